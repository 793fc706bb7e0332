package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	k8sjson "sigs.k8s.io/json"
)

// answer is what the types make of one object.
type answer struct {
	Object  any      `json:"object,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	Error   string   `json:"error,omitempty"`
}

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

func round(in io.Reader, out *json.Encoder) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if err := out.Encode(read(lines.Bytes())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// read decodes as a client does, which ignores what it does not know, and lists that.
func read(line []byte) answer {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return answer{Error: err.Error()}
	}
	object := empty(kind.Kind)
	if object == nil {
		return answer{Error: fmt.Sprintf("no type for kind %q", kind.Kind)}
	}
	strict, err := k8sjson.UnmarshalStrict(line, object)
	if err != nil {
		return answer{Error: err.Error()}
	}
	result := answer{Object: object}
	for _, err := range strict {
		field := unknownField.FindStringSubmatch(err.Error())
		if field == nil {
			return answer{Error: err.Error()}
		}
		result.Unknown = append(result.Unknown, field[1])
	}
	return result
}

func empty(kind string) any {
	switch kind {
	case trainer.TrainJobKind:
		return &trainer.TrainJob{}
	case trainer.TrainingRuntimeKind:
		return &trainer.TrainingRuntime{}
	case trainer.ClusterTrainingRuntimeKind:
		return &trainer.ClusterTrainingRuntime{}
	default:
		return nil
	}
}
