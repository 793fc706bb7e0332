// Passes a value of every type of the contract to the host and back, and writes what it gets to env vars.
package main

import (
	"fmt"
	"strings"

	"example.com/plugin/policy"
	"example.com/plugin/policy/build"
	"example.com/plugin/policy/check"
	"example.com/plugin/policy/transform"
)

func init() {
	transform.Register(write)
	build.Register(emit)
	check.Register(warn)
}

func write(ctx policy.Context) error {
	podSet := ctx.Info().PodSet("node")
	if absent := ctx.Info().PodSet("absent"); absent != nil {
		return fmt.Errorf("the pod set %s is not in the runtime", absent.Name())
	}
	node := podSet.Container("node")
	show := func(name string, values ...any) { node.PutEnv("SHAPES_"+name, fmt.Sprintln(values...)) }

	show("STRINGS", ctx.Job().Name(), ctx.FitName("Ähm_"+strings.Repeat("x", 70), 20), ctx.Job().Label("none") == nil)
	show("NUMBERS", *ctx.QuantityCeil("1500m"), *ctx.QuantityMilli("-2"), ctx.QuantityCeil("x") == nil, *podSet.BackoffLimit())
	show("BOOLEANS", ctx.Supports("nothing"), podSet.IsIndexed(), ctx.Info().HasHostNames())
	document := ctx.ParseJson(`{"list": [1, -9007199254740993, true, "text"], "empty": {}}`)
	show("DOCUMENT", *document.Integer("/list/1"), *document.Boolean("/list/2"), *document.Text("/list/3"), *document.Kind("/empty"),
		document.Len("/list"), document.Keys(""), document.Keys("/empty"), *document.Json("/list"))

	show("COMMAND", *node.Command(), node.Args() == nil)
	node.SetArgs([]string{"", "--text", "ä"})
	show("ARGS", len(*node.Args()), *node.Args())

	node.PutPort(policy.Port{Name: policy.Some("http"), Number: 65535, Protocol: "TCP"})
	node.PutPort(policy.Port{Number: 53, Protocol: "UDP"})
	for at, port := range node.Ports() {
		show(fmt.Sprintf("PORT_%d", at), port.Number, port.Protocol, port.Name == nil, port.HostPort == nil, port.HostIp == nil)
	}
	podSet.PutOwnConfigMap("files", "-files", policy.Some(uint32(0o440)), []policy.KeyFile{
		{Key: "text", Path: "a", Mode: policy.Some(uint32(0o400))},
		{Key: "bytes", Path: "b"},
	})
	node.PutMount(policy.Mount{Volume: "files", Path: "/files", SubPathExpr: policy.Some("$(HOME)"), ReadOnly: true})
	for _, mount := range node.Mounts() {
		show("MOUNT", mount.Volume, mount.Path, mount.SubPath == nil, *mount.SubPathExpr, mount.ReadOnly, mount.MountPropagation == nil)
	}
	for at, devices := range podSet.Devices() {
		show(fmt.Sprintf("DEVICES_%d", at), devices.Source, *devices.Count, devices.Accelerator)
	}
	ctx.Keep("key", strings.Repeat("kept ", 2000))
	return nil
}

func emit(ctx policy.Context) error {
	files := ctx.Objects().Emit("v1", "ConfigMap", "-files", nil)
	files.Append("text", fmt.Sprint(len(*ctx.Kept("key")), ctx.Kept("none") == nil))
	files.SetBinary("bytes", []byte{0, 1, 255})
	files.SetBinary("none", nil)
	return nil
}

func warn(ctx policy.Context) {
	ctx.Warn("is seen by the check", policy.Some("spec.trainer.command"))
	ctx.Warn("a message without a field", nil)
}

func main() {}
