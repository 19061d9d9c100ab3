-- A letter of credit: the buyer's bank promises to pay the seller once the documents
-- of the shipment are in order. Buyer, bank and seller each approve the terms; the
-- documents themselves never come on the chain, only a salted hash of each.

-- Who may act in which role: organization/user. Deployed and changed like a contract.
CREATE TABLE parties (
  party text PRIMARY KEY,
  role  text NOT NULL CHECK (role IN ('buyer', 'bank', 'seller'))
);

CREATE TABLE letters (
  id       text PRIMARY KEY,
  buyer    text NOT NULL REFERENCES parties,
  bank     text NOT NULL REFERENCES parties,
  seller   text NOT NULL REFERENCES parties,
  amount   numeric NOT NULL CHECK (amount > 0),
  currency text NOT NULL,
  expires  timestamptz NOT NULL,
  status   text NOT NULL CHECK (status IN ('draft', 'issued', 'presented', 'paid', 'refused', 'expired'))
);

CREATE TABLE approvals (
  letter text NOT NULL REFERENCES letters,
  role   text NOT NULL,
  party  text NOT NULL,
  signed timestamptz NOT NULL,
  PRIMARY KEY (letter, role)
);

-- A document by its commitment: sha256(salt || content). Salt and content are in
-- schema private of those whom they concern.
CREATE TABLE documents (
  letter     text NOT NULL REFERENCES letters,
  kind       text NOT NULL,
  commitment bytea NOT NULL CHECK (octet_length(commitment) = 32),
  presented  timestamptz NOT NULL,
  PRIMARY KEY (letter, kind)
);

CREATE FUNCTION me() RETURNS text STABLE LANGUAGE sql AS $$ SELECT tx_org() || '/' || tx_user() $$;

-- my_role is the role in which the caller acts.
CREATE FUNCTION my_role() RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_role text;
BEGIN
  SELECT role INTO v_role FROM parties WHERE party = me();
  IF NOT FOUND THEN
    RAISE EXCEPTION '% is no party', me() USING ERRCODE = '42501';
  END IF;
  RETURN v_role;
END $$;

CREATE FUNCTION add_party(p_party text, p_role text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO parties VALUES (p_party, p_role);
END $$;

-- letter_for reads a letter to which the caller is a party in a role.
CREATE FUNCTION letter_for(p_id text, p_role text) RETURNS letters STABLE LANGUAGE plpgsql AS $$
DECLARE
  v_letter letters;
BEGIN
  SELECT * INTO v_letter FROM letters WHERE id = p_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'letter of credit % does not exist', p_id USING ERRCODE = 'P0002';
  END IF;
  IF me() <> (CASE p_role WHEN 'buyer' THEN v_letter.buyer WHEN 'bank' THEN v_letter.bank ELSE v_letter.seller END) THEN
    RAISE EXCEPTION '% is not the % of letter of credit %', me(), p_role, p_id USING ERRCODE = '42501';
  END IF;
  RETURN v_letter;
END $$;

-- apply: the buyer proposes the terms.
CREATE FUNCTION apply_for_letter(p_id text, p_bank text, p_seller text, p_amount numeric, p_currency text, p_days int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF my_role() <> 'buyer' THEN
    RAISE EXCEPTION 'only a buyer applies for a letter of credit' USING ERRCODE = '42501';
  END IF;
  INSERT INTO letters VALUES (p_id, me(), p_bank, p_seller, p_amount, p_currency, tx_time() + p_days * interval '1 day', 'draft');
  INSERT INTO approvals VALUES (p_id, 'buyer', me(), tx_time());
END $$;

-- approve: bank and seller agree. With the third approval the letter is issued.
CREATE FUNCTION approve_letter(p_id text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_role text := my_role();
  v_letter letters := letter_for(p_id, v_role);
  v_count bigint;
BEGIN
  IF v_letter.status <> 'draft' THEN
    RAISE EXCEPTION 'letter of credit % is %', p_id, v_letter.status USING ERRCODE = '22023';
  END IF;
  INSERT INTO approvals VALUES (p_id, v_role, me(), tx_time());
  SELECT count(*) INTO v_count FROM approvals WHERE letter = p_id;
  IF v_count = 3 THEN
    UPDATE letters SET status = 'issued' WHERE id = p_id;
    RETURN 'issued';
  END IF;
  RETURN 'draft';
END $$;

-- present: the seller commits to the documents of the shipment.
CREATE FUNCTION present_document(p_id text, p_kind text, p_commitment bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_letter letters := letter_for(p_id, 'seller');
BEGIN
  IF v_letter.status NOT IN ('issued', 'presented') THEN
    RAISE EXCEPTION 'letter of credit % is %', p_id, v_letter.status USING ERRCODE = '22023';
  END IF;
  IF tx_time() > v_letter.expires THEN
    RAISE EXCEPTION 'letter of credit % has expired', p_id USING ERRCODE = '22023';
  END IF;
  INSERT INTO documents VALUES (p_id, p_kind, p_commitment, tx_time());
  UPDATE letters SET status = 'presented' WHERE id = p_id;
END $$;

-- pay: the bank has seen the documents, which it got from the seller outside of the
-- chain and compared with the commitments.
CREATE FUNCTION pay_letter(p_id text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  v_letter letters := letter_for(p_id, 'bank');
  v_documents bigint;
BEGIN
  SELECT count(*) INTO v_documents FROM documents WHERE letter = p_id AND kind IN ('bill of lading', 'invoice');
  IF v_letter.status <> 'presented' OR v_documents < 2 THEN
    RAISE EXCEPTION 'documents are missing for letter of credit %', p_id USING ERRCODE = '22023';
  END IF;
  UPDATE letters SET status = 'paid' WHERE id = p_id;
  RETURN v_letter.amount;
END $$;

CREATE FUNCTION refuse_letter(p_id text, p_reason text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_letter letters := letter_for(p_id, 'bank');
BEGIN
  IF v_letter.status NOT IN ('draft', 'presented') THEN
    RAISE EXCEPTION 'letter of credit % is %', p_id, v_letter.status USING ERRCODE = '22023';
  END IF;
  UPDATE letters SET status = 'refused' WHERE id = p_id;
  RAISE NOTICE 'refused: %', p_reason;
END $$;

-- commitment is what stands on the chain for a document.
CREATE FUNCTION commitment(p_salt bytea, p_content text) RETURNS bytea IMMUTABLE LANGUAGE sql AS $$
  SELECT sha256(p_salt || convert_to(p_content, 'UTF8'))
$$;
