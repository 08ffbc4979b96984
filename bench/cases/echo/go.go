// go.go - a server of the case `echo` on goroutines and package net: says its port, and serves until
// it is killed. Its argument is the size of a connection's buffer. See others.cpp.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
)

func require(condition bool, what string) {
	if !condition {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func echo(peer net.Conn, size int) {
	defer peer.Close()
	buffer := make([]byte, size)
	for {
		n, err := peer.Read(buffer)
		if err != nil {
			return
		}
		if _, err = peer.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--help" {
		fmt.Println("go.go - a server of the case echo on goroutines and package net: says its port, " +
			"and serves until it is killed. See others.cpp. Argument: SIZE of a buffer.")
		return
	}
	runtime.GOMAXPROCS(1)
	require(len(os.Args) == 2, "one argument, the size of a buffer")
	size, err := strconv.Atoi(os.Args[1])
	require(err == nil, "the size of a buffer")
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require(err == nil, "listen")
	fmt.Println(listener.Addr().(*net.TCPAddr).Port, runtime.Version())
	for {
		peer, err := listener.Accept()
		require(err == nil, "accept")
		go echo(peer, size)
	}
}
