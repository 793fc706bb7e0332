package policy

import (
	"errors"
	"unsafe"
)

// kept is what the host writes into this instance, and what it reads. The garbage collector must not free it. Each call gets a new
// instance, so nothing else frees it either.
var kept [][]uint64

// allocate returns memory that is aligned for every type. It is longer than the size, because not even an empty list may be at the end of
// the instance's memory.
func allocate(size uint32) unsafe.Pointer {
	words := make([]uint64, size/8+2)
	kept = append(kept, words)
	return unsafe.Pointer(unsafe.SliceData(words))
}

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	memory := allocate(size)
	if old != nil {
		copy(unsafe.Slice((*byte)(memory), size), unsafe.Slice((*byte)(old), oldSize))
	}
	return memory
}

// rawString is a string in memory. Addresses have 32 bits, unlike Go's pointers.
type rawString struct{ at, length uint32 }

// rawList is a list in memory.
type rawList struct{ at, length uint32 }

// rawOption is an option in memory.
type rawOption[T any] struct {
	some  bool
	value T
}

// rawResult is the result of a phase in memory.
type rawResult struct {
	isFailure bool
	failure   rawFailure
}

func address(memory unsafe.Pointer) uint32 { return uint32(uintptr(memory)) }

func pointer(address uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), address) }

func bit(value bool) uint32 {
	if value {
		return 1
	}
	return 0
}

func same[T any](value T) T { return value }

func liftString(raw rawString) string {
	return unsafe.String((*byte)(pointer(raw.at)), raw.length)
}

func lowerString(value string) rawString {
	memory := allocate(uint32(len(value)))
	copy(unsafe.Slice((*byte)(memory), len(value)), value)
	return rawString{address(memory), uint32(len(value))}
}

func liftOption[R, T any](raw rawOption[R], lift func(R) T) *T {
	if !raw.some {
		return nil
	}
	return Some(lift(raw.value))
}

// liftHandleOption returns a handle, or nil.
func liftHandleOption[R, T any](raw rawOption[R], lift func(R) T) (handle T) {
	if raw.some {
		handle = lift(raw.value)
	}
	return handle
}

func lowerOption[T, R any](value *T, lower func(T) R) rawOption[R] {
	if value == nil {
		return rawOption[R]{}
	}
	return rawOption[R]{true, lower(*value)}
}

func liftList[R, T any](raw rawList, lift func(R) T) []T {
	values := make([]T, raw.length)
	for at, item := range unsafe.Slice((*R)(pointer(raw.at)), raw.length) {
		values[at] = lift(item)
	}
	return values
}

func lowerList[T, R any](values []T, lower func(T) R) rawList {
	var item R
	memory := allocate(uint32(len(values)) * uint32(unsafe.Sizeof(item)))
	items := unsafe.Slice((*R)(memory), len(values))
	for at, value := range values {
		items[at] = lower(value)
	}
	return rawList{address(memory), uint32(len(values))}
}

// Called returns the context that a phase is called with. The packages of the phases use it.
func Called(handle uint32) Context { return contextHandle(handle) }

// Result returns what a phase returns to the host. The packages of the phases use it.
func Result(err error) unsafe.Pointer {
	result := (*rawResult)(allocate(uint32(unsafe.Sizeof(rawResult{}))))
	if err == nil {
		return unsafe.Pointer(result)
	}
	var failure Failure
	if !errors.As(err, &failure) {
		failure.Message = err.Error()
	}
	*result = rawResult{true, lowerFailure(failure)}
	return unsafe.Pointer(result)
}
