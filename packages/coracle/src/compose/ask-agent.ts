/** How controllers beside the embedded server ask agents: over the connection that virt-api has to each. */
import { ApiError, internalError, type Status } from '@coracle/apimachinery/meta/status';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import { wholeBody } from '@coracle/client/transport/response-body';
import type { ApiHandler } from '@coracle/runtime/http/seam';

/** Makes the caller. `connect` rejects for a node that is unknown or names no endpoint. */
export const createAskAgent =
  (connect: (nodeName: string) => Promise<ApiHandler>): AskAgent =>
  async (nodeName, path, body, { signal }) => {
    const handler = await connect(nodeName);
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const answer = await handler({
      method: 'POST',
      path,
      query: '',
      headers: { 'content-type': 'application/json' },
      body: bytes,
      peer: { address: '' },
      signal,
    });
    const text = new TextDecoder().decode(await wholeBody(answer, signal));
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw internalError(`node ${nodeName} answered ${answer.status} and no JSON`);
    }
    if (answer.status === 200) return value;
    const { message, reason } = value as Partial<Status>;
    throw new ApiError({
      code: answer.status,
      ...(reason !== undefined && { reason }),
      message: message ?? `node ${nodeName} answered ${answer.status}`,
    });
  };
