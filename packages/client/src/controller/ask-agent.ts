/**
 * Asks the agent of a node: `POST path` on its port, JSON both ways. Throws ApiError with what the agent refuses, another
 * Error when it cannot be reached.
 */
export type AskAgent = (
  nodeName: string,
  path: string,
  body: object,
  options: { readonly signal: AbortSignal },
) => Promise<unknown>;
