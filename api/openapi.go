// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

// openAPI is the description of the API. TestOpenAPI makes it of the table routes and the
// types, with their comments: go test ./api -run TestOpenAPI -write.
//
//go:embed openapi.json
var openAPI []byte

func (h *handler) openapi(*http.Request, string) (any, error) { return json.RawMessage(openAPI), nil }
