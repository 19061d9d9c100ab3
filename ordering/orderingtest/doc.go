// Package orderingtest is the suite that every ordering service has to pass. A
// service's tests call [Run] with a function that starts it; the suite drives
// it through [ordering.Service] alone, so that what holds for the embedded
// orderer holds for agreement among many.
//
// It is for tests only.
package orderingtest
