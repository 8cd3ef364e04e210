package keeper

func oldKeeper() int { return 0 }
