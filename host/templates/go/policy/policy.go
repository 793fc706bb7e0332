// Package policy is the contract of plugins of Trainyard: an interface for each handle, a type for each value, and a method for each method
// of the contract, whose names are those of docs/contract.md in Go's spelling. Options of values are pointers, and none is nil. It
// contains nothing else, so that a plugin needs no module of a registry. `trainyard plugin new` wrote it; a newer version of the contract
// only adds to it.
//
// A test runs without a host: it passes a type of its own that embeds an interface, and has the methods that the plugin calls.
package policy

// Some returns a pointer to a value, for parameters and fields that are options.
func Some[T any](value T) *T { return &value }

// Error returns the sentence that the user reads, so that a phase can return a Failure as its error.
func (failure Failure) Error() string { return failure.Message }
