/** Values of which a test says only what its case is about. */

/** Some members of a value, and of those some of theirs. */
export type Part<T> = T extends readonly (infer E)[]
  ? readonly Part<E>[]
  : T extends (...args: never[]) => unknown
    ? T
    : T extends object
      ? { readonly [K in keyof T]?: Part<T[K]> | undefined }
      : T;

/** The value as those who take it see it. What is there is checked against the type; the rest is missing. */
export const partly = <T>(part: NoInfer<Part<T>>): T => part as unknown as T;
