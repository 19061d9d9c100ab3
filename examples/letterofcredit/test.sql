-- tallystick test examples/letterofcredit/schema.sql examples/letterofcredit/test.sql
-- On this network of one organization alice is the buyer, admin the bank and bob the
-- seller; on a real one each is a user of another organization.

-- as: admin
SELECT add_party('dev/alice', 'buyer');
SELECT add_party('dev/admin', 'bank');
SELECT add_party('dev/bob', 'seller');

-- expect error: 42501 only a buyer
SELECT apply_for_letter('LC1', 'dev/admin', 'dev/bob', 10000, 'EUR', 30);
-- as: alice
SELECT apply_for_letter('LC1', 'dev/admin', 'dev/bob', 10000, 'EUR', 30);
-- expect error: 23505
SELECT approve_letter('LC1');
-- as: admin
-- expect: draft
SELECT approve_letter('LC1');
-- expect error: 22023 documents are missing
SELECT pay_letter('LC1');
-- as: bob
-- expect error: 22023 is draft
SELECT present_document('LC1', 'invoice', '\x00'::bytea);
-- expect: issued
SELECT approve_letter('LC1');
-- expect: buyer | dev/alice
-- expect: seller | dev/bob
-- expect: bank | dev/admin
SELECT role, party FROM approvals WHERE letter = 'LC1' ORDER BY party = 'dev/admin', party;

-- The seller presents documents by their commitments: 32 bytes, whatever they say.
-- expect error: 23514
SELECT present_document('LC1', 'invoice', '\x00'::bytea);
SELECT present_document('LC1', 'invoice', sha256('\x5a17'::bytea || 'invoice 4711: 100 bags, 10000 EUR'::bytea));
-- as: alice
-- expect error: 42501 is not the seller
SELECT present_document('LC1', 'bill of lading', sha256('x'::bytea));
-- as: admin
-- expect error: 22023 documents are missing
SELECT pay_letter('LC1');
-- as: bob
SELECT present_document('LC1', 'bill of lading', sha256('\x0b5e'::bytea || 'MV Example, 100 bags'::bytea));

-- Whoever got salt and content outside of the chain compares them with it; nobody
-- else can, not even by guessing.
-- expect: t
SELECT commitment = commitment('\x5a17', 'invoice 4711: 100 bags, 10000 EUR') FROM documents WHERE letter = 'LC1' AND kind = 'invoice';
-- expect: f
SELECT commitment = commitment('\x5a17', 'invoice 4711: 100 bags, 99 EUR') FROM documents WHERE letter = 'LC1' AND kind = 'invoice';

-- as: admin
-- expect: 10000
SELECT pay_letter('LC1');
-- expect error: 22023 is paid
SELECT refuse_letter('LC1', 'too late');
-- expect: paid
SELECT status FROM letters;
