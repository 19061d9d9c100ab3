// Package pgcatalog computes pg_catalog and information_schema from the
// catalog, for the tools that ask there: psql's backslash commands, drivers,
// object-relational mappers.
//
// relations.txt gives the relations with their OIDs and columns as PostgreSQL
// 15 has them; types without a counterpart here (aclitem, pg_lsn) are text.
// A relation for which nothing here produces rows is empty: PostgreSQL has the
// feature behind it and Tallystick does not.
//
// Nothing in here can be reached from a contract.
package pgcatalog
