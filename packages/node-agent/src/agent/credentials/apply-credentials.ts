/** Puts keys and passwords into a guest, by its agent. */
import type { AgentCredentials } from '@coracle/kubevirt/rules/access-credentials/agent-credentials';
import type { GuestAgent } from '../../qmp/guest-agent.ts';

/** Setting a password starts a program in the guest, and hashes. */
const SET_MS = 20_000;

/**
 * Gives each user exactly these keys: what else is in `authorized_keys` goes, as upstream does it, so that a key taken out of
 * a Secret opens nothing any more. Throws QmpError, for the first user that could not be served.
 */
export function applyCredentials(agent: GuestAgent, { keys, passwords }: AgentCredentials): Promise<void> {
  return agent.converse(async (ask) => {
    for (const [username, wanted] of keys)
      await ask('guest-ssh-add-authorized-keys', { username, keys: wanted, reset: true }, { timeoutMs: SET_MS });
    for (const [username, text] of passwords) {
      const password = Buffer.from(text, 'utf8').toString('base64');
      await ask('guest-set-user-password', { username, password, crypted: false }, { timeoutMs: SET_MS });
    }
  });
}
