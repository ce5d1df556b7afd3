/** The thread that does large work: one task after another. What is sent to it is all it knows. */
import { parentPort } from 'node:worker_threads';
import { ApiError, type Status } from '@coracle/apimachinery/meta/status';
import { JSON_AND_YAML } from '@coracle/apiserver/endpoints/body';
import { type FormWork, writeForm } from '@coracle/apiserver/endpoints/document-forms';
import type { LargeBody } from '@coracle/apiserver/endpoints/read-elsewhere';
import { createStageRunner } from '@coracle/apiserver/endpoints/run-stage';
import { builtinResources } from '@coracle/apiserver/kinds/builtin/builtin-resources';
import { PROTOBUF } from '@coracle/apiserver/kinds/protobuf/documents';
import { protobufBody } from '@coracle/apiserver/kinds/protobuf/request-body';
import type { StageJob, StageResult } from '@coracle/apiserver/registry/stage-job';
import { kubevirtResources } from '@coracle/kubevirt/kinds/kubevirt';

export type ThreadTask =
  | { readonly type: 'read'; readonly body: LargeBody }
  | { readonly type: 'stage'; readonly job: StageJob }
  | { readonly type: 'write'; readonly work: FormWork };

export type ThreadAnswer =
  /** Once: the program is loaded. */
  | { readonly type: 'ready' }
  | { readonly type: 'read'; readonly json: Uint8Array; readonly duplicates: readonly string[] }
  | { readonly type: 'stage'; readonly result: StageResult }
  | { readonly type: 'write'; readonly bytes: Uint8Array | undefined }
  | { readonly type: 'refused'; readonly status: Status }
  | { readonly type: 'failed'; readonly text: string };

const encoder = new TextEncoder();
const bodyDecoders = new Map([...JSON_AND_YAML, [PROTOBUF, protobufBody] as const]);
const runStage = createStageRunner({ resources: [...builtinResources(), ...kubevirtResources()], bodyDecoders });

async function answerTo(task: ThreadTask): Promise<ThreadAnswer> {
  try {
    if (task.type === 'stage') return { type: 'stage', result: await runStage(task.job) };
    if (task.type === 'write') return { type: 'write', bytes: writeForm(task.work) };
    const { type, bytes } = task.body;
    const parsed = bodyDecoders.get(type)!(bytes);
    const json = encoder.encode(JSON.stringify(parsed.value) ?? 'null');
    return { type: 'read', json, duplicates: parsed.duplicates() };
  } catch (error) {
    return error instanceof ApiError
      ? { type: 'refused', status: error.status }
      : { type: 'failed', text: (error as Error).stack ?? String(error) };
  }
}

/** Buffers that are handed over rather than copied. */
function handedOver(answer: ThreadAnswer): ArrayBuffer[] {
  const bytes =
    answer.type === 'read'
      ? [answer.json]
      : answer.type === 'write'
        ? [answer.bytes]
        : answer.type === 'stage'
          ? [answer.result.object, ...Object.values(answer.result.form ?? {})]
          : [];
  return [...new Set(bytes.filter((one) => one !== undefined).map(({ buffer }) => buffer as ArrayBuffer))];
}

parentPort!.on('message', async (task: ThreadTask) => {
  const answer = await answerTo(task);
  parentPort!.postMessage(answer, handedOver(answer));
});
parentPort!.postMessage({ type: 'ready' } satisfies ThreadAnswer);
