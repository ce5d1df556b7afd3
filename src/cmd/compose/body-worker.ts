/** The thread that reads large YAML and protobuf bodies: one after another, each into the bytes of plain JSON. */
import { parentPort } from 'node:worker_threads';
import { PROTOBUF } from '../../api/kinds/protobuf/documents.ts';
import { protobufBody } from '../../api/kinds/protobuf/request-body.ts';
import { ApiError, type Status } from '../../api/meta/status.ts';
import { parseYaml } from '../../api/schema/parse-json.ts';
import type { LargeBody } from '../../server/endpoints/read-elsewhere.ts';

export type BodyRequest = LargeBody & { readonly id: number };
export type BodyAnswer =
  | { readonly id: number; readonly json: Uint8Array; readonly duplicates: readonly string[] }
  | { readonly id: number; readonly refusal: Status }
  | { readonly id: number; readonly failure: string };

const encoder = new TextEncoder();

function read({ id, type, bytes, kind }: BodyRequest): BodyAnswer {
  try {
    const parsed =
      type === PROTOBUF
        ? protobufBody(bytes, kind && { ...kind, strategy: kind })
        : parseYaml(new TextDecoder().decode(bytes));
    return { id, json: encoder.encode(JSON.stringify(parsed.value) ?? 'null'), duplicates: parsed.duplicates() };
  } catch (error) {
    return error instanceof ApiError ? { id, refusal: error.status } : { id, failure: String(error) };
  }
}

parentPort!.on('message', (request: BodyRequest) => {
  const answer = read(request);
  parentPort!.postMessage(answer, 'json' in answer ? [answer.json.buffer as ArrayBuffer] : []);
});
