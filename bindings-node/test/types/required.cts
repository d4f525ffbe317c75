// The same types for CommonJS.
import drayhorse = require("drayhorse");

export const connect: typeof drayhorse.Queue.connect = drayhorse.Queue.connect;
