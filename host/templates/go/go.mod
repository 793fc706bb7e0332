module example.com/plugin

go 1.24
