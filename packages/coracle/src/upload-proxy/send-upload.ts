/** Hands the body of a request to the agent of a node, which takes no more of it than it can write. */
import type { IncomingMessage } from 'node:http';
import { UPLOAD_PATH, UPLOAD_PROTOCOL, type UploadReply } from '@coracle/cluster-rules/storage/pool-calls';
import type { ApiHandler, MessageSocket } from '@coracle/runtime/http/seam';
import { NO_BYTES } from '@coracle/runtime/http/seam';

/** The agent's words; more than this is none of them. */
const MAX_REPLY_CHARS = 64 * 1024;

export interface Upload {
  readonly handle: string;
  readonly bytes: number;
  /** Nothing of its body has been read. */
  readonly request: IncomingMessage;
  readonly signal: AbortSignal;
  /** Called with each reply of the agent; the last one is `done` or `failed`. */
  readonly onReply: (reply: UploadReply) => void;
}

/** Resolves when the connection to the agent has ended. Rejects when there is none. */
export async function sendUpload(agent: ApiHandler, upload: Upload): Promise<void> {
  const { handle, bytes, signal } = upload;
  const answer = await agent({
    method: 'POST',
    path: `${UPLOAD_PATH}${handle}`,
    query: `bytes=${bytes}`,
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal,
    upgradeTo: UPLOAD_PROTOCOL,
  });
  const { upgrade } = answer;
  if (answer.status !== 101 || !upgrade) throw new Error(`the node answers ${answer.status}`);
  await new Promise<void>((resolve) => upgrade.accept(requestSocket(upload, resolve)));
}

/** The request as one end of a connection: its body is what comes, and the agent's lines are what is sent. */
function requestSocket({ request, onReply }: Upload, ended: () => void): MessageSocket {
  let text = '';
  let isClosed = false;
  const listeners: ((code: number, reason: string) => void)[] = [];
  const close = (code: number): void => {
    if (isClosed) return;
    isClosed = true;
    request.pause();
    for (const listener of listeners) listener(code, '');
    ended();
  };
  // A sender that goes when all is there has done its part.
  request.once('close', () => {
    if (!request.complete) close(1006);
  });
  return {
    protocol: UPLOAD_PROTOCOL,
    buffered: 0,
    send(data) {
      text += typeof data === 'string' ? data : new TextDecoder().decode(data);
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) onReply(JSON.parse(line) as UploadReply);
      if (text.length > MAX_REPLY_CHARS) close(1009);
    },
    close: () => close(1000),
    pause: () => void request.pause(),
    resume: () => void request.resume(),
    onMessage: (listener) => void request.on('data', (chunk: Buffer) => listener(chunk, true)),
    onClose(listener) {
      if (isClosed) queueMicrotask(() => listener(1000, ''));
      else listeners.push(listener);
    },
  };
}
