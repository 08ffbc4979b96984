// go.go - a server of the case `http` on package net/http: says its port, and serves until it is
// killed. See others.cpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - a server of the case http on package net/http: says its port, and " +
			"serves until it is killed. See others.cpp.")
		return
	}
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port, runtime.Version())
	answer := []byte("Hello, world!")
	http.Serve(listener, http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
		to.Header()["Content-Type"] = []string{"text/plain"}
		to.Write(answer)
	}))
}
