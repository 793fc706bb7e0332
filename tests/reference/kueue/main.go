// Command kueue says what Kueue computes of TrainJobs for their quota: the pod sets, and what one of their pods requests.
//
// In: one JSON object a line, {"objects": [...]}: what a cluster stores. Out: one line for each, {"trainJobs": [...]}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
)

type request struct {
	Objects []json.RawMessage `json:"objects"`
}

type response struct {
	TrainJobs []answer `json:"trainJobs"`
}

// answer is what Kueue computes of one TrainJob.
type answer struct {
	// TrainJob is its namespace and its name.
	TrainJob string   `json:"trainJob"`
	PodSets  []podSet `json:"podSets,omitempty"`
	// Error is why there are no pod sets, or why Kueue never admits or starts them.
	Error string `json:"error,omitempty"`
}

type podSet struct {
	Name  string `json:"name"`
	Count int32  `json:"count"`
	// Requests are those of one pod: CPUs in thousandths, all others in units.
	Requests map[string]int64 `json:"requests,omitempty"`
	// Claims are the resource claims of one pod: what each is taken from.
	Claims map[string]string `json:"claims,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, to io.Writer) error {
	ctrl.SetLogger(logr.Discard())
	scheme, err := newScheme()
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
		cluster, err := newCluster(scheme, question.Objects)
		if err != nil {
			return err
		}
		all := response{TrainJobs: []answer{}}
		for _, object := range cluster.objects {
			if job, ok := object.(*trainer.TrainJob); ok {
				answer, err := cluster.answer(context.Background(), job)
				if err != nil {
					return err
				}
				all.TrainJobs = append(all.TrainJobs, answer)
			}
		}
		if err := out.Encode(all); err != nil {
			return err
		}
	}
	return lines.Err()
}
