// Greets each node of a TrainJob by an env var. The imports and exports are those of the contract (wit/), in the canonical ABI of components.
package main

import "unsafe"

//go:wasmimport trainyard:policy/context@1.0.0 [method]context.info
func contextInfo(context int32) int32

//go:wasmimport trainyard:policy/context@1.0.0 [method]context.because
func contextBecause(context int32, text unsafe.Pointer, length int32)

//go:wasmimport trainyard:policy/pod-set-info@1.0.0 [method]info.nodes
func infoNodes(info int32, list unsafe.Pointer)

//go:wasmimport trainyard:policy/pod-set-info@1.0.0 [method]pod-set.container
func podSetContainer(podSet int32, name unsafe.Pointer, length int32, option unsafe.Pointer)

//go:wasmimport trainyard:policy/pod-set-info@1.0.0 [method]container.default-env
func containerDefaultEnv(container int32, name unsafe.Pointer, nameLength int32, value unsafe.Pointer, valueLength int32)

// What the host wrote into this instance. The garbage collector must not free it.
var allocated [][]byte

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size int32) unsafe.Pointer {
	// Eight bytes more, because not even an empty list may be at the end of the memory.
	bytes := make([]byte, size+8)
	if old != nil {
		copy(bytes, unsafe.Slice((*byte)(old), oldSize))
	}
	allocated = append(allocated, bytes)
	return unsafe.Pointer(unsafe.SliceData(bytes))
}

// list is a list of handles as the host returns it.
type list struct{ at, length int32 }

func (l list) handles() []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(uintptr(l.at))), l.length)
}

// option is a handle that may be absent.
type option struct{ isSome, handle int32 }

func text(s string) (unsafe.Pointer, int32) {
	return unsafe.Pointer(unsafe.StringData(s)), int32(len(s))
}

// result is result<_, failure>; its first word is 0 for ok.
var result [8]int32

//go:wasmexport trainyard:policy/transform@1.0.0#transform
func transform(context int32) unsafe.Pointer {
	reason, length := text("each node is greeted")
	contextBecause(context, reason, length)
	var podSets list
	infoNodes(contextInfo(context), unsafe.Pointer(&podSets))
	name, nameLength := text("node")
	key, keyLength := text("GREETING")
	value, valueLength := text("hello")
	for _, podSet := range podSets.handles() {
		var node option
		podSetContainer(podSet, name, nameLength, unsafe.Pointer(&node))
		if node.isSome&1 == 1 {
			containerDefaultEnv(node.handle, key, keyLength, value, valueLength)
		}
	}
	result[0] = 0
	return unsafe.Pointer(&result)
}

func main() {}
