// Package pki makes and checks the X.509 certificates of connections between the
// nodes, orderers and users of a network.
//
// Every organization has a certificate authority ([Authority]) that certifies the
// Ed25519 keys of its members: the organization is the subject's O, the name its
// CN, the role its OU. Connections are mutual TLS 1.3. A certificate is accepted
// ([Verifier]) if
//
//   - the authority of the organization that it names has signed it, and no other
//     could have: authorities are looked up by organization;
//   - it is valid by this machine's clock;
//   - its key is the one that the network has registered for this very user with
//     this role: the chain at nodes, the genesis at orderers. A user whom the
//     chain has revoked gets no connection, whatever the certificate says;
//   - the key is not on this machine's own list of revoked keys.
//
// Address and host name of a peer prove nothing between nodes and orderers and are
// not looked at. Certificates also carry host names, for PostgreSQL clients that
// check them (sslmode=verify-full).
//
// [KeyPair] reads certificate and key again when their files change, so a
// certificate is replaced without a restart.
//
// # What it is not
//
// Nothing here reaches the chain: it knows raw keys and heights only, and no
// certificate's validity or clock has any influence on a verdict.
package pki
