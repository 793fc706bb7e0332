// merge answers what the reference makes of a runtime patch: one JSON object a line in, one a line out.
//
// In: {"base": a JobSet's spec, "patch": what is merged into it, "typed": whether the patch goes through the reference's
// own type first, which is where nulls and empty lists are lost}. Out: {"merged": the result} or {"error": the reason}.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"log"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

type question struct {
	Base  json.RawMessage `json:"base"`
	Patch json.RawMessage `json:"patch"`
	Typed bool            `json:"typed"`
}

type answer struct {
	Merged json.RawMessage `json:"merged,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func merge(q question) (json.RawMessage, error) {
	patch := []byte(q.Patch)
	if q.Typed {
		var typed trainer.JobSetSpecPatch
		if err := json.Unmarshal(patch, &typed); err != nil {
			return nil, err
		}
		var err error
		if patch, err = json.Marshal(typed); err != nil {
			return nil, err
		}
	}
	return strategicpatch.StrategicMergePatch(q.Base, patch, jobset.JobSetSpec{})
}

func main() {
	in := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	// Not buffered, because a fuzzer waits for each answer.
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for {
		var q question
		if err := in.Decode(&q); err == io.EOF {
			break
		} else if err != nil {
			log.Fatalf("not a question: %v", err)
		}
		var a answer
		merged, err := merge(q)
		if a.Merged = merged; err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			log.Fatal(err)
		}
	}
}
