// go.go - Go's select with GOMAXPROCS=1. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

func play(items uint64) float64 {
	var c [4]chan uint64
	for i := range c {
		c[i] = make(chan uint64)
	}
	begun := time.Now()
	for _, one := range c {
		go func(one chan uint64) {
			for i := uint64(1); i <= items; i++ {
				one <- i
			}
		}(one)
	}
	sum, item := uint64(0), uint64(0)
	for n := 4 * items; n != 0; n-- {
		select {
		case item = <-c[0]:
		case item = <-c[1]:
		case item = <-c[2]:
		case item = <-c[3]:
		}
		sum += item
	}
	took := time.Since(begun)
	if sum != 4*(items*(items+1)/2) {
		fmt.Fprintln(os.Stderr, "wrong: select")
		os.Exit(1)
	}
	return float64(took.Nanoseconds()) / float64(4*items)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - Go's select with GOMAXPROCS=1. See workload.hpp. Argument: " +
			"--quick.")
		return
	}
	runtime.GOMAXPROCS(1)
	items := uint64(500000)
	if len(os.Args) > 1 && os.Args[1] == "--quick" {
		items = 50
	}
	fmt.Printf("{\"about\": \"%s\"}\n", runtime.Version())
	play(items / 10)
	fmt.Printf("{\"row\": \"Go\", \"unit\": \"ns\", \"value\": %g}\n", play(items))
}
