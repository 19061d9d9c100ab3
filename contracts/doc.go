// Package contracts runs user-defined functions: it is the language dispatcher
// behind exec.Functions.
//
// [Functions] compiles a function once per version and hands calls to the
// handler of its language: PL/pgSQL (package contracts/plpgsql) or SQL
// (sqlfunc.go). It adds what languages have in common: strictness, the search
// path a function runs with, and the rule that what stands in schema
// blockchain is a contract and may use nothing that differs between nodes: each
// of its statements passes determinism.Verify when it is planned. [Functions.Call]
// is also where EXECUTE is asked for, and where a SECURITY DEFINER function
// becomes its owner.
//
// Compiled functions are kept by object identifier and version and compared
// with the definition they are asked for, so that a version that was rolled
// back cannot be taken for a later one of the same number. What is kept or
// compiled anew leaves no trace in results or footprints.
package contracts
