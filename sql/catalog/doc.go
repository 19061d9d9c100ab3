// Package catalog describes the objects of the database: schemas, tables,
// indexes, constraints, functions, users' grants.
//
// A [Catalog] is an immutable picture of all objects as of one snapshot. It is
// loaded from ordinary versioned rows (store.go), so it has a history like any
// table, an old height is read with the columns of that height, and a
// transaction that resolved a name has read that name's row: every descriptor
// carries its key, and a name that was not found is a read as well (see
// [Catalog.Reads]).
//
// Objects are changed only through [Editor], by DDL in a block's system phase
// or at genesis. Descriptors are never modified once they are in a Catalog.
//
// The package also lays rows out (rows.go): which key a row has in its primary
// index and in each secondary index, and what is stored there.
package catalog
