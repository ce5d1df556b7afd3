/** Bytes of JSON that are turned into another form in one go. */
export const LARGE_ANSWER = 64 * 1024;
