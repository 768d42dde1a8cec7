// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// VendorError is a number in the field vendor_err of a completion, which each vendor has of its own.
type VendorError struct {
	Code   uint32       `json:"vendor_err"`
	Driver string       `json:"driver"`
	Name   string       `json:"name"` // the vendor's words
	Status ErrorMeaning `json:"status"`
}

// vendorErrors are those that were seen at adapters in retries and refusals (RC.md §11, P10), with the
// code of the status that they come with.
var vendorErrors = []struct {
	code   uint32
	name   string
	status int
}{
	{0x81, "transport retry counter exceeded", 12},
	{0x87, "RNR retry counter exceeded", 13},
	{0x88, "remote access error", 10},
	{0x8a, "remote invalid request error", 9},
}

// findVendorError returns what a number in vendor_err means at mlx5.
func findVendorError(text string) (*VendorError, error) {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return nil, UsageErrorf("%q is no vendor_err: want a number such as 0x81, as the completion has it (perftest calls it syndrom)", text)
	}
	var known []string
	for _, v := range vendorErrors {
		if v.code == uint32(n) {
			m, err := meaningOf(strconv.Itoa(v.status))
			if err != nil {
				return nil, err
			}
			return &VendorError{Code: v.code, Driver: "mlx5", Name: v.name, Status: *m}, nil
		}
		known = append(known, fmt.Sprintf("%#x", v.code))
	}
	return nil, fmt.Errorf("vendor_err %#x is not known: %s of mlx5 are. The field status of the same completion says what it means with a group: gleam explain status 12", n, strings.Join(known, ", "))
}

func explainVendorErrCommand(env *Env) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "vendor-err NUMBER",
		Short: "What a completion's vendor_err of an RNIC means with a group",
		Long: `Says what the field vendor_err of a work completion means, which perftest prints as
syndrom: the numbers of NVIDIA's ConnectX (mlx5) for retries that are used up and
requests that are refused. Other adapters have numbers of their own: the field status
is the same for all (gleam explain status). It asks no daemon.`,
		Example: `  gleam explain vendor-err 0x81`,
		Args:    oneArg("the field vendor_err, such as 0x81"),
		ValidArgsFunction: func(*cobra.Command, []string, string) (numbers []string, _ cobra.ShellCompDirective) {
			for _, v := range vendorErrors {
				numbers = append(numbers, fmt.Sprintf("%#x\t%s", v.code, v.name))
			}
			return numbers, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := findVendorError(args[0])
			if err != nil {
				return err
			}
			return out.print(env.Stdout, v, func(w io.Writer) {
				wrap(w, "vendor", 10, fmt.Sprintf("%#x %s (%s)", v.Code, v.Name, v.Driver))
				writeMeaning(w, &v.Status)
			})
		},
	}
	out.addTo(c)
	return c
}
