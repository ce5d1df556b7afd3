/** A whole control plane in this process, in memory: schemas, defaulting, admission, KubeVirt's API; no controllers, no node. */

import type { ControlPlane, ControlPlaneOptions } from '../../packages/coracle/src/compose/control-plane.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { startPlane } from './control-plane.ts';

const VIRT_CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';

export interface Answer {
  readonly status: number;
  /** The Warning headers. */
  readonly warnings: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  readonly json: any;
}

export interface InProcessControlPlane {
  readonly plane: ControlPlane;
  /** One request as the admin; `target` is path and query. */
  send(method: string, target: string, body?: unknown, type?: string): Promise<Answer>;
  /** The same as upstream's virt-controller, whose reports of instances are taken. */
  report(method: string, target: string, body?: unknown, type?: string): Promise<Answer>;
  /** The same as anybody: a name and groups. */
  sendAs(
    user: readonly [string, ...string[]],
    method: string,
    target: string,
    body?: unknown,
    type?: string,
  ): Promise<Answer>;
  stop(): Promise<void>;
}

/** Starts it on a fake clock; `options` go before the defaults. */
export async function startInProcess(options: Partial<ControlPlaneOptions> = {}): Promise<InProcessControlPlane> {
  const { plane, ask, stop } = await startPlane({ clock: createFakeClock(), ...options });
  const askAs = async (
    as: readonly [string, ...string[]],
    [method, target, body, type = 'application/json']: [string, string, unknown?, (string | undefined)?],
  ): Promise<Answer> => {
    const headers = { 'content-type': type };
    const { status, headers: answered, text, json, response } = await ask(`${method} ${target}`, { as, headers, body });
    if (typeof response.body === 'function') throw new Error('a stream');
    return { status, warnings: answered['warning'] ?? '', json: json ?? text };
  };
  return {
    plane,
    send: (...request) => askAs(['admin', 'system:masters'], request),
    report: (...request) => askAs([VIRT_CONTROLLER, 'system:masters'], request),
    sendAs: (user, ...request) => askAs(user, request),
    stop,
  };
}
