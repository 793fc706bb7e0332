package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// parse reads the documents of a file as kubectl does; a list is each of its items.
func parse(text string) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var objects []*unstructured.Unstructured
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := parseDocument(document)
		if err != nil {
			return nil, err
		}
		switch {
		case object == nil:
		case object.IsList():
			err = object.EachListItem(func(item apiruntime.Object) error {
				objects = append(objects, item.(*unstructured.Unstructured))
				return nil
			})
		default:
			objects = append(objects, object)
		}
		if err != nil {
			return nil, err
		}
	}
}

// parseDocument reads one object; nil if there is none in the document.
func parseDocument(document []byte) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &object.Object); err != nil {
		return nil, err
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, fmt.Errorf("an object without apiVersion or kind")
	}
	return object, nil
}

// name is the kind and the name of an object.
func name(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return object.GetKind() + " " + namespace + "/" + object.GetName()
	}
	return object.GetKind() + " " + object.GetName()
}
