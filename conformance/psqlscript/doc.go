// Package psqlscript reads scripts as psql does (src/bin/psql/mainloop.c,
// src/fe_utils/psqlscan.l of PostgreSQL 15): statements end at semicolons
// outside of quotes, comments, parentheses and BEGIN ATOMIC bodies; a backslash
// outside of quotes begins a command; :name, :'name' and :"name" are variables.
//
// A [Scanner] is read while the script runs, because what comes next depends on
// it: the data of COPY FROM STDIN stands in the script only if the server asked
// for it, and variables get their values from statements. What the variables
// are is decided by [Text.Expand], so that one script can run on two servers
// whose variables differ.
//
// It is not psql: commands are handed out as text, and who runs the script
// decides which of them it knows.
package psqlscript
