// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/gleam-rdma/gleam/config/linkrate"
)

var writeOpenAPI = flag.Bool("write", false, "TestOpenAPI writes openapi.json")

// openapi.json describes the routes and types that there are.
func TestOpenAPI(t *testing.T) {
	doc := describeAPI(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(doc, "", "") // gleamd has a copy: spaces in front of the lines are a fifth of it
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *writeOpenAPI {
		if err := os.WriteFile("openapi.json", text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, openAPI) {
		t.Error("openapi.json does not describe the routes and types; type: go test ./api -run TestOpenAPI -write")
	}
}

// describeAPI makes the document of the table routes.
func describeAPI(t *testing.T) *openapi3.T {
	s := &schemas{comments: readComments(t), named: make(openapi3.Schemas)}
	doc := &openapi3.T{
		OpenAPI: "3.0.3",
		Info: &openapi3.Info{
			Title: "gleamd", Version: "v1",
			Description: "The API of gleamd, on its Unix socket and, where the configuration has api.listen, over TCP with mutual TLS. " +
				"Fields are added within a version, and clients ignore fields that they do not know. Lists and events are sent as lines of JSON to clients that accept " + Lines + ".",
			License: &openapi3.License{Name: "Apache-2.0"},
		},
		Paths: openapi3.NewPaths(), Components: &openapi3.Components{Schemas: s.named},
	}
	s.request = true
	for i := range routes {
		if routes[i].body != nil {
			s.of(reflect.TypeOf(routes[i].body))
		}
	}
	s.request = false
	for i := range routes {
		x := &routes[i]
		item := doc.Paths.Value(x.path)
		if item == nil {
			item = new(openapi3.PathItem)
			doc.Paths.Set(x.path, item)
		}
		item.SetOperation(x.method, s.operation(x))
	}
	return doc
}

// operation describes one route.
func (s *schemas) operation(x *route) *openapi3.Operation {
	words := strings.FieldsFunc(x.path, func(r rune) bool { return strings.ContainsRune("/{}.", r) })
	op := &openapi3.Operation{Summary: x.summary, OperationID: strings.ToLower(x.method) + "_" + strings.Join(words[1:], "_"), Responses: openapi3.NewResponsesWithCapacity(3)}
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(x.path, -1) {
		schema := openapi3.NewStringSchema()
		if m[1] != "name" {
			schema = ipSchema()
		}
		op.AddParameter(openapi3.NewPathParameter(m[1]).WithSchema(schema).WithDescription(map[string]string{
			"group": "address of the group", "member": "address of the member", "name": "name of the port"}[m[1]]))
	}
	for _, q := range x.query {
		schema := openapi3.NewStringSchema()
		switch q.format {
		case "uint64":
			schema = openapi3.NewIntegerSchema().WithMin(0)
		case "boolean":
			schema = openapi3.NewBoolSchema()
		}
		schema.Format = q.format
		op.AddParameter(openapi3.NewQueryParameter(q.name).WithSchema(schema).WithDescription(q.summary))
	}
	if x.body != nil {
		body := openapi3.NewRequestBody().WithRequired(x.method != "POST" || x.path != "/v1/reload").WithJSONSchemaRef(s.of(reflect.TypeOf(x.body)))
		op.RequestBody = &openapi3.RequestBodyRef{Value: body}
	}
	ok := openapi3.NewResponse().WithDescription("Done.")
	status := "204"
	if x.answer != nil {
		status = "200"
		ok = openapi3.NewResponse().WithDescription("The answer.").WithJSONSchemaRef(s.of(reflect.TypeOf(x.answer)))
		if x.stream {
			ok.Content = openapi3.Content{Lines: ok.Content["application/json"]}
		} else if x.lines || x.follow {
			line := reflect.TypeOf(x.answer)
			if x.lines {
				line = line.Elem()
			}
			ok.Content[Lines] = openapi3.NewMediaType().WithSchemaRef(s.of(line))
		}
	}
	op.Responses.Set(status, &openapi3.ResponseRef{Value: ok})
	op.Responses.Set("default", &openapi3.ResponseRef{Value: openapi3.NewResponse().
		WithDescription("400 for a request that makes no sense, 403 for a right that the caller lacks, 404 for what is not there, 405, 409 for a refusal, 413 for a body over 1 MiB, 503 for too much at once, 500.").
		WithJSONSchemaRef(s.of(reflect.TypeFor[Error]()))})
	return op
}

// schemas are those of Go types, by their names.
type schemas struct {
	comments map[string]string
	named    openapi3.Schemas
	request  bool // the type is read: DecodeRegister and the like say which fields have to be there
}

func ipSchema() *openapi3.Schema {
	s := openapi3.NewStringSchema()
	s.Format = "ip"
	return s
}

// of describes a type. A struct is described once, by its name.
func (s *schemas) of(t reflect.Type) *openapi3.SchemaRef {
	ref := func(v *openapi3.Schema) *openapi3.SchemaRef { return openapi3.NewSchemaRef("", v) }
	switch t {
	case reflect.TypeFor[netip.Addr]():
		return ref(ipSchema())
	case reflect.TypeFor[time.Time]():
		return ref(openapi3.NewDateTimeSchema())
	case reflect.TypeFor[linkrate.Rate]():
		return ref(openapi3.NewInt64Schema().WithMin(0))
	case reflect.TypeFor[QPN](), reflect.TypeFor[PSN]():
		v := openapi3.NewStringSchema().WithPattern("^0x[0-9a-f]{6}$")
		v.Description = "24 bits; requests may have a number"
		return ref(v)
	case reflect.TypeFor[json.RawMessage]():
		return ref(openapi3.NewObjectSchema())
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return ref(openapi3.NewStringSchema())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		a := openapi3.NewArraySchema()
		a.Items = s.of(t.Elem())
		return ref(a)
	case reflect.Map:
		o := openapi3.NewObjectSchema()
		o.AdditionalProperties = openapi3.AdditionalProperties{Schema: s.of(t.Elem())}
		return ref(o)
	case reflect.Bool:
		return ref(openapi3.NewBoolSchema())
	case reflect.String:
		return ref(openapi3.NewStringSchema())
	case reflect.Float64:
		return ref(openapi3.NewFloat64Schema())
	case reflect.Int, reflect.Int64:
		return ref(openapi3.NewInt64Schema())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v := openapi3.NewIntegerSchema().WithMin(0)
		v.Format = t.Kind().String()
		return ref(v)
	case reflect.Struct:
		return s.object(t)
	}
	panic("no schema for " + t.String())
}

// object describes a struct by the comments of its fields.
func (s *schemas) object(t reflect.Type) *openapi3.SchemaRef {
	if s.named[t.Name()] == nil {
		o := openapi3.NewObjectSchema()
		o.Description = s.comments[t.Name()]
		s.named[t.Name()] = openapi3.NewSchemaRef("", o)
		for _, f := range reflect.VisibleFields(t) {
			tag, ok := f.Tag.Lookup("json")
			if !ok || f.Anonymous {
				continue
			}
			name, options, _ := strings.Cut(tag, ",")
			field := s.of(f.Type)
			owner := t
			if len(f.Index) > 1 { // of an embedded struct
				owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
			}
			if c := s.comments[owner.Name()+"."+f.Name]; c != "" && field.Ref == "" {
				field.Value.Description = strings.Trim(cmp.Or(c, "")+"; "+field.Value.Description, "; ")
			}
			o.Properties[name] = field
			if !s.request && !strings.Contains(options, "omit") {
				o.Required = append(o.Required, name)
			}
		}
		slices.Sort(o.Required)
	}
	return openapi3.NewSchemaRef("#/components/schemas/"+t.Name(), s.named[t.Name()].Value)
}
