// Command tallystick is the one program of the project: it runs a development
// network, checks data directories, and checks and tests contracts before they are
// deployed. `tallystick help` lists what it can do.
//
// Results go to standard output, everything else (the log, progress, texts for
// people) to standard error. The exit code is 0 only if all went well.
package main
