// Command surface_go prints the public surface of a Go package for surface.py: surface_go FOLDER gives
// {"Queue.Enqueue": {"type": "…", "required": true}, "Queue.Wait(timeoutMs)": …} of the sources, without compiling them.
package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"log"
	"os"
	"strings"
)

type entry struct {
	Type string `json:"type"`
	// Required: the name is one of those that the table has to list.
	Required bool `json:"required"`
}

var (
	files = token.NewFileSet()
	found = map[string]entry{}
)

func main() {
	isSource := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	packages, err := parser.ParseDir(files, os.Args[1], isSource, 0)
	if err != nil {
		log.Fatal(err)
	}
	for _, pack := range packages {
		for _, file := range pack.Files {
			for _, declaration := range file.Decls {
				declare(declaration)
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}

func declare(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		function(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				structure(s)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					note(name.Name, s.Type, true)
				}
			}
		}
	}
}

// idiomatic are methods that interfaces of the standard library ask for: no concepts of this package.
var idiomatic = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "UnmarshalJSON": true}

// function notes a function or a method, and its parameters like Queue.Wait(timeoutMs).
func function(d *ast.FuncDecl) {
	name := d.Name.Name
	if d.Recv != nil {
		receiver := strings.TrimPrefix(text(d.Recv.List[0].Type), "*")
		if !ast.IsExported(receiver) || !ast.IsExported(name) {
			return
		}
		name = receiver + "." + name
	}
	if !ast.IsExported(name) {
		return
	}
	note(name, d.Type, d.Recv == nil || !idiomatic[d.Name.Name])
	for _, parameter := range d.Type.Params.List {
		for _, given := range parameter.Names {
			found[name+"("+given.Name+")"] = entry{Type: text(parameter.Type)}
		}
	}
}

func structure(s *ast.TypeSpec) {
	note(s.Name.Name, s.Type, true)
	fields, ok := s.Type.(*ast.StructType)
	if !ok || !s.Name.IsExported() {
		return
	}
	for _, field := range fields.Fields.List {
		// An embedded struct lists its fields itself.
		for _, name := range field.Names {
			if name.IsExported() {
				note(s.Name.Name+"."+name.Name, field.Type, true)
			}
		}
	}
}

func note(name string, of ast.Expr, required bool) {
	if ast.IsExported(name) {
		found[name] = entry{text(of), required}
	}
}

// text is a type as it is written; the fields of structs are no part of it.
func text(of ast.Expr) string {
	var out strings.Builder
	switch of.(type) {
	case nil:
		return ""
	case *ast.StructType:
		return "struct"
	}
	if err := printer.Fprint(&out, files, of); err != nil {
		log.Fatal(err)
	}
	return out.String()
}
