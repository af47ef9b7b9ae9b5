package mirror

const childEnv = "ECLUSE_MIRROR_TEST_CHILD"

func child() int { return 0 }
