// Package datum holds SQL values: their types, text and binary forms, order,
// keys and stored rows.
//
// A [Datum] is 16 bytes and carries no type: plans are statically typed, as in
// PostgreSQL, and a [Type] says how to read it. Fixed-size values live in the
// datum itself, others behind a pointer to immutable bytes. Copying a datum
// never copies its bytes; nobody may change bytes that a datum refers to.
//
// What is stored or hashed is decided here and is part of engine_version: the
// row encoding (row.go), the ordered key encoding (AppendKey of a [Desc]) and
// the binary forms. Text forms depend on a [Format] and never on the process
// environment. Text compares by its UTF-8 bytes (collation "C").
package datum
