module github.com/drayhorse/drayhorse/go

go 1.24
