// Package layers holds the rules of the module's structure as data, and the
// tests that enforce them. It has no code to call.
//
// layers.txt is the package map: who may import whom, who must never reach
// whom, and which packages are pure. A new package has to be entered there
// before it compiles past the tests. ambient.txt lists the files of packages
// with reproducible results that read the clock or the environment all the
// same, with the reason.
//
// The tests parse the sources of the module and nothing else: they run in a
// second, without the go command and without compiling.
package layers
