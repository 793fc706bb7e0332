// Command oracle says what the reference makes of TrainJobs: as an API server with its CRDs admits them, as its webhooks
// judge them, and as its controller builds objects from them.
//
//	oracle CRDS
//
// CRDS is the folder of the reference's CRDs. In: one JSON object a line, {"yaml": documents, "runs": how often to judge them}.
// Out: one line for each, {"answers": [...]}: the different answers, which depend on the order of the reference's plugins and maps.
// With "times" in place of "runs", the line is {"nanoseconds": ...}: how long it takes to build and encode the objects so many times.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

type request struct {
	YAML string `json:"yaml"`
	Runs int    `json:"runs"`
	// Times is how often to build the objects of the one TrainJob, when it is measured.
	Times int `json:"times"`
}

type measured struct {
	Nanoseconds int64 `json:"nanoseconds"`
}

type response struct {
	Answers []json.RawMessage `json:"answers"`
}

// answer is what becomes of the TrainJobs of one input.
type answer struct {
	// Dropped are the fields that the CRDs do not have.
	Dropped []string `json:"dropped,omitempty"`
	// Refused says why an object is refused. There are no objects then.
	Refused  []refusal `json:"refused,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
	Objects  []any     `json:"objects,omitempty"`
}

// refusal is one error.
type refusal struct {
	// Object is the kind and the name of what is refused.
	Object string `json:"object"`
	// By is who refuses it: yaml, the schema, a webhook, the build, or a panic.
	By    string `json:"by"`
	Field string `json:"field,omitempty"`
	Error string `json:"error"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, to io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: oracle CRDS")
	}
	ctrl.SetLogger(logr.Discard())
	server, err := newServer(args[0])
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	out := json.NewEncoder(to)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var question request
		if err := json.Unmarshal(lines.Bytes(), &question); err != nil {
			return err
		}
		if question.Times > 0 {
			took, err := server.time(question.YAML, question.Times)
			if err != nil {
				return err
			}
			if err := out.Encode(measured{took.Nanoseconds()}); err != nil {
				return err
			}
			continue
		}
		answers, err := server.answers(question.YAML, question.Runs)
		if err != nil {
			return err
		}
		if err := out.Encode(response{answers}); err != nil {
			return err
		}
	}
	return lines.Err()
}
