/** The thread that reads large YAML and protobuf bodies: one after another, each into the bytes of plain JSON. */
import { parentPort } from 'node:worker_threads';
import { PROTOBUF } from '../../api/kinds/protobuf/documents.ts';
import { protobufBody } from '../../api/kinds/protobuf/request-body.ts';
import { ApiError, type Status } from '../../api/meta/status.ts';
import { parseYaml } from '../../api/schema/parse-json.ts';
import type { LargeBody } from '../../server/endpoints/read-elsewhere.ts';

export type BodyAnswer =
  /** Said once: what reads is loaded. */
  | 'ready'
  | { readonly json: Uint8Array; readonly duplicates: readonly string[] }
  | { readonly refusal: Status }
  | { readonly failure: string };

const encoder = new TextEncoder();

function read({ type, bytes, kind }: LargeBody): Exclude<BodyAnswer, 'ready'> {
  try {
    const parsed =
      type === PROTOBUF
        ? protobufBody(bytes, kind && { ...kind, strategy: kind })
        : parseYaml(new TextDecoder().decode(bytes));
    return { json: encoder.encode(JSON.stringify(parsed.value) ?? 'null'), duplicates: parsed.duplicates() };
  } catch (error) {
    return error instanceof ApiError ? { refusal: error.status } : { failure: String(error) };
  }
}

parentPort!.on('message', (request: LargeBody) => {
  const answer = read(request);
  parentPort!.postMessage(answer, 'json' in answer ? [answer.json.buffer as ArrayBuffer] : []);
});
parentPort!.postMessage('ready' satisfies BodyAnswer);
