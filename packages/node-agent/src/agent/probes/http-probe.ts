/** A GET to a guest, as kubelet sends it: 200 to 399 is a success, certificates are not checked. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { HTTPGetAction } from '@coracle/apimachinery/types/types';
import type { ProbeOutcome } from '@coracle/kubevirt/rules/probe/probe-count';
import type { Clock } from '@coracle/runtime/clock/clock';

export interface HttpProbeOptions {
  /** Where the port of the guest is dialled. */
  readonly target: { readonly host: string; readonly port: number };
  /** ADDRESS:PORT as guests and people know it. */
  readonly name: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Asks once. Redirects are not followed: they lead away from the guest. Rejects with the signal alone. */
export function probeHttp(
  action: DeepReadonly<HTTPGetAction>,
  { target, name, clock, timeoutMs, signal }: HttpProbeOptions,
): Promise<ProbeOutcome> {
  const isTls = action.scheme === 'HTTPS';
  const path = action.path?.startsWith('/') ? action.path : `/${action.path ?? ''}`;
  const url = `${isTls ? 'https' : 'http'}://${name}${path}`;
  const failure = (why: string): ProbeOutcome => ({ type: 'failure', output: `Get "${url}": ${why}` });
  const headers: Record<string, string> = { host: name, 'user-agent': 'kube-probe/1.34', accept: '*/*' };
  for (const { name: header, value } of action.httpHeaders ?? []) headers[header.toLowerCase()] = value;
  return new Promise((resolve, reject) => {
    const finish = (outcome: ProbeOutcome): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
      asked?.destroy();
      resolve(outcome);
    };
    const onAbort = (): void => {
      cancel();
      asked?.destroy();
      reject(signal.reason as Error);
    };
    const cancel = clock.schedule(timeoutMs, () =>
      finish(failure('context deadline exceeded (Client.Timeout exceeded while awaiting headers)')),
    );
    signal.addEventListener('abort', onAbort, { once: true });
    let asked: ReturnType<typeof httpRequest> | undefined;
    try {
      const options = { ...target, path, headers, agent: false };
      asked = isTls ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
    } catch (error) {
      // A header or path of the spec that no request can have.
      finish(failure((error as Error).message));
      return;
    }
    asked.on('error', (error) => finish(failure(error.message)));
    asked.on('response', ({ statusCode = 0 }) => {
      // The body says nothing, so not a byte of it is read.
      if (statusCode >= 200 && statusCode < 400) finish({ type: 'success' });
      else finish({ type: 'failure', output: `HTTP probe failed with statuscode: ${statusCode}` });
    });
    asked.end();
  });
}
