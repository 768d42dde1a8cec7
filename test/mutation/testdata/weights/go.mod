module example.org/weights

go 1.26
