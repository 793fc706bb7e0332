// Asks the code of a real API server what it makes of the cases of ../cases: one line for each, what it drops, what it refuses
// and what it stores.
//
//	go run . ../cases/*.json
//
// writes the answers into the files. The tests of the crate read them there and need no Go. Without files, each line of the standard
// input is a case with its schema, and is answered with a line (tests/fuzz/src/schemas.rs).
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var kind = schema.GroupVersionKind{Group: "test.trainyard.dev", Version: "v1", Kind: "Thing"}

type file struct {
	Schema  json.RawMessage `json:"schema"`
	Refused *[]string       `json:"refused,omitempty"`
	Cases   []aCase         `json:"cases,omitempty"`
}

type aCase struct {
	Name   string          `json:"name"`
	Value  json.RawMessage `json:"value"`
	Old    json.RawMessage `json:"old,omitempty"`
	Answer *answer         `json:"answer,omitempty"`
}

// resource is a schema as a server compiles it.
type resource struct {
	structural *structuralschema.Structural
	validate   func(object, old *unstructured.Unstructured) field.ErrorList
}

type answer struct {
	Unknown []string       `json:"unknown"`
	Errors  []fieldError   `json:"errors"`
	Stored  map[string]any `json:"stored"`
}

type fieldError struct {
	Field string `json:"field"`
	Body  string `json:"body"`
}

func main() {
	if len(os.Args) == 1 {
		if err := answerLines(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	for _, path := range os.Args[1:] {
		if err := answerFile(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
	}
}

// answerLines answers cases, null if a server refuses the schema.
func answerLines() error {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	resources := map[string]*resource{}
	for {
		var question struct {
			aCase
			Schema json.RawMessage `json:"schema"`
		}
		if err := in.Decode(&question); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		r, found := resources[string(question.Schema)]
		if !found {
			var err error
			var refused []string
			if r, refused, err = compile(question.Schema); err != nil {
				return err
			}
			if len(refused) > 0 {
				r = nil
			}
			resources[string(question.Schema)] = r
		}
		if r != nil {
			if err := answerCase(&question.aCase, r); err != nil {
				return err
			}
		}
		if err := out.Encode(question.Answer); err != nil {
			return err
		}
	}
}

func answerFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var files []file
	if err := json.Unmarshal(data, &files); err != nil {
		return err
	}
	for i := range files {
		if err := answerSchema(&files[i]); err != nil {
			return fmt.Errorf("schema %d: %w", i, err)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(files); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func answerSchema(f *file) error {
	r, refused, err := compile(f.Schema)
	if err != nil {
		return err
	}
	if len(f.Cases) == 0 {
		f.Refused = &refused
		return nil
	}
	if len(refused) > 0 {
		return fmt.Errorf("a server refuses it: %s", strings.Join(refused, "; "))
	}
	for i := range f.Cases {
		if err := answerCase(&f.Cases[i], r); err != nil {
			return fmt.Errorf("case %q: %w", f.Cases[i].Name, err)
		}
	}
	return nil
}

// compile returns the schema, or what a server refuses it for.
func compile(text json.RawMessage) (*resource, []string, error) {
	var props v1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		return nil, nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, nil, err
	}
	if refused := crdErrors(&internal); len(refused) > 0 {
		return nil, refused, nil
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, nil, err
	}
	structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, nil, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, nil, err
	}
	strategy := customresource.NewStrategy(nil, true, kind, validator, nil, structural, nil, nil, nil)
	validate := func(object, old *unstructured.Unstructured) field.ErrorList {
		if old == nil {
			return strategy.Validate(context.Background(), object)
		}
		return strategy.ValidateUpdate(context.Background(), object, old)
	}
	return &resource{structural, validate}, []string{}, nil
}

// crdErrors says what a server refuses a CRD with this schema for.
func crdErrors(props *apiextensions.JSONSchemaProps) []string {
	preserve := false
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + kind.Group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: kind.Group,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: kind.Kind, ListKind: "ThingList"},
			Scope: apiextensions.NamespaceScoped,
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
			}},
			Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: props},
			PreserveUnknownFields: &preserve,
			Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{kind.Version}},
	}
	errs := []string{}
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd) {
		// The cost of rules is no concern of the crate.
		if !strings.Contains(err.Detail, "cost") {
			errs = append(errs, err.Field+": "+err.Detail)
		}
	}
	sort.Strings(errs)
	return errs
}

// answerCase does to an object what the handler and the strategy of custom resources do to it.
func answerCase(c *aCase, r *resource) error {
	var object map[string]any
	if err := utiljson.Unmarshal(c.Value, &object); err != nil {
		return err
	}
	c.Answer = &answer{Unknown: []string{}, Errors: []fieldError{}}
	u := &unstructured.Unstructured{Object: object}
	unknown, err := read(u, r.structural)
	if err != nil {
		c.Answer.Errors = append(c.Answer.Errors, fieldError{"<decoding>", err.Error()})
		return nil
	}
	sort.Strings(unknown)
	c.Answer.Unknown = append(c.Answer.Unknown, unknown...)
	if u.GetNamespace() == "" {
		u.SetNamespace("default")
		defer delete(u.Object["metadata"].(map[string]any), "namespace")
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		// What the server draws at random is always the same here.
		u.SetName(u.GetGenerateName() + "xxxxx")
		defer delete(u.Object["metadata"].(map[string]any), "name")
	}
	var errs field.ErrorList
	if len(c.Old) == 0 {
		errs = r.validate(u, nil)
	} else {
		var before map[string]any
		if err := utiljson.Unmarshal(c.Old, &before); err != nil {
			return err
		}
		old := &unstructured.Unstructured{Object: before}
		old.SetNamespace(u.GetNamespace())
		old.SetResourceVersion("1")
		u.SetResourceVersion("1")
		defer delete(u.Object["metadata"].(map[string]any), "resourceVersion")
		errs = r.validate(u, old)
	}
	for _, err := range errs {
		c.Answer.Errors = append(c.Answer.Errors, fieldError{err.Field, err.ErrorBody()})
	}
	sort.Slice(c.Answer.Errors, func(i, j int) bool {
		a, b := c.Answer.Errors[i], c.Answer.Errors[j]
		return a.Field+"\x00"+a.Body < b.Field+"\x00"+b.Body
	})
	c.Answer.Stored = u.Object
	return nil
}

func read(u *unstructured.Unstructured, structural *structuralschema.Structural) ([]string, error) {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	paths := pruning.PruneWithOptions(u.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	unknown = append(unknown, paths...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, structural)
	fieldErr, paths := objectmeta.CoerceWithOptions(nil, u.Object, structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fieldErr != nil {
		return nil, fieldErr
	}
	unknown = append(unknown, paths...)
	if found {
		if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
			return nil, err
		}
		if meta.CreationTimestamp.IsZero() {
			unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		}
	}
	defaulting.Default(u.Object, structural)
	return unknown, nil
}
