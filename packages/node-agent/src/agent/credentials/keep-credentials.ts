/** Keeps what the guest's agent puts into the guest in step with the Secrets. */

import { SECRETS } from '@coracle/apimachinery/types/resource-types';
import { isNotFound } from '@coracle/client/api-failure';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import {
  agentCredentials,
  agentSecrets,
  lacksForCredentials,
  type SecretData,
} from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { applyCredentials } from './apply-credentials.ts';

/** What the condition AccessCredentialsSynchronized says. */
export type CredentialsState =
  | { readonly type: 'synchronized' }
  | { readonly type: 'failed'; readonly reason: string; readonly message: string };

export interface CredentialKeeper {
  /** Looks again, unless that is under way or not due yet. */
  look(): void;
  /** Undefined for a guest that gets nothing by its agent, and before the first look. */
  readonly state: CredentialsState | undefined;
  stop(): void;
}

/** How often Secrets are read again: a kubelet brings a change within a minute. */
const POLL_MS = 10_000;
/** Characters of what a guest says of its refusal: it may say anything. */
const MAX_MESSAGE = 256;
const OFFLINE: CredentialsState = { type: 'failed', reason: 'AgentNotConnected', message: 'Guest agent is offline' };

interface ReadSecrets {
  readonly data: ReadonlyMap<string, SecretData>;
  /** Changes with any of them. */
  readonly version: string;
}

/** Nothing is asked before `look`. States that turn wake the launcher, and are events of the instance. */
export function keepCredentials(launcher: LauncherState, guest: Guest): CredentialKeeper {
  const { clock } = launcher.environment;
  const life = createLinkedController(guest.signal);
  let phase: 'due' | 'busy' | 'waiting' = 'due';
  let cancel: (() => void) | undefined;
  let state: CredentialsState | undefined;
  /** What the guest has; undefined when its agent has come anew, behind which may be a guest that was booted again. */
  let applied: string | undefined;
  let wasConnected = false;

  const put = (next: CredentialsState): void => {
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    state = next;
    if (next.type === 'synchronized')
      launcher.event('Normal', 'AccessCredentialsSyncSuccess', 'Access credentials sync successful.');
    else if (next !== OFFLINE)
      launcher.event('Warning', 'AccessCredentialsSyncFailed', `Access credentials sync failed: ${next.message}`);
    launcher.changed();
  };
  const check = async (vmi: ReadonlyVmi, names: readonly string[]): Promise<void> => {
    const { agentFacts } = guest.state;
    // What the agent can is asked first, and nothing of a guest whose file systems take no writes.
    if (!agentFacts || agentFacts.frozen) return;
    const lack = lacksForCredentials(vmi.spec, agentFacts.missing);
    if (lack !== undefined) return put({ type: 'failed', reason: 'UnsupportedAgent', message: lack });
    const found = await readSecrets(launcher, vmi, names);
    if ('missing' in found) return put({ type: 'failed', reason: 'SecretNotFound', message: found.missing });
    if (found.version === applied) return;
    await applyCredentials(guest.agent, agentCredentials(vmi.spec, found.data));
    applied = found.version;
    put({ type: 'synchronized' });
  };
  const again = (): void => {
    phase = 'waiting';
    cancel = clock.schedule(POLL_MS, () => {
      phase = 'due';
      launcher.changed();
    });
  };

  return {
    look() {
      const { vmi, record } = launcher;
      const names = vmi ? agentSecrets(vmi.spec) : [];
      if (!vmi || names.length === 0 || life.signal.aborted) return;
      const { agentConnected, connected, runState } = guest.state;
      if (!agentConnected) {
        wasConnected = false;
        applied = undefined;
        return put(OFFLINE);
      }
      if (!wasConnected || (state === OFFLINE && guest.state.agentFacts && phase === 'waiting')) {
        wasConnected = true;
        cancel?.();
        if (phase === 'waiting') phase = 'due';
      }
      if (phase !== 'due' || !connected || runState !== 'running' || record?.migration || record?.saving) return;
      phase = 'busy';
      check(vmi, names)
        .catch((error: Error) => {
          if (life.signal.aborted) return;
          if (error instanceof QmpError)
            put({ type: 'failed', reason: 'SyncFailed', message: error.message.slice(0, MAX_MESSAGE) });
          else launcher.log.warn('access credentials not looked at', { error: error.message });
        })
        .finally(() => {
          if (!life.signal.aborted) again();
        });
    },
    get state() {
      return state;
    },
    stop() {
      cancel?.();
      life.abort(new DOMException('the credentials are not kept any more', 'AbortError'));
      life.release();
    },
  };
}

/** The Secrets; `missing` names the first that cannot be had. Throws ApiError of other kinds, and the signal's reason. */
async function readSecrets(
  { environment: { client, signal } }: LauncherState,
  vmi: ReadonlyVmi,
  names: readonly string[],
): Promise<ReadSecrets | { readonly missing: string }> {
  const data = new Map<string, SecretData>();
  const versions: string[] = [];
  for (const name of names) {
    try {
      const key = { namespace: vmi.metadata.namespace ?? '', name };
      const secret = await client.get(SECRETS, key, { signal });
      versions.push(`${secret.metadata.uid}/${secret.metadata.resourceVersion}`);
      data.set(name, dataOf(secret.data));
    } catch (error) {
      if (isNotFound(error)) return { missing: `Secret ${name} not found` };
      throw error;
    }
  }
  return { data, version: versions.join() };
}

const dataOf = (data: Readonly<Record<string, unknown>> = {}): SecretData =>
  new Map(Object.entries(data).map(([name, text]) => [name, Buffer.from(String(text), 'base64')]));
