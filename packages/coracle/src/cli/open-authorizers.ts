/** The authorizers that the flags of `coracle up` name, with their files read and followed. */
import { readFileSync, statSync } from 'node:fs';
import { goDuration } from '@coracle/apimachinery/meta/go-duration';
import {
  type ConfiguredAuthorizer,
  readAuthorizationConfiguration,
} from '@coracle/apiserver/auth/authorization-configuration';
import type { AuthorizerSetup } from '@coracle/apiserver/auth/authorizer-chain';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { reasonOf } from '../compose/outbound.ts';
import { clusterFrom } from '../config/cluster.ts';
import { watchFile } from '../config/watched-file.ts';
import { type AuthorizationChoice, CONFIG_FLAG, type Mode, WEBHOOK_FILE_FLAG } from './authorization-choice.ts';
import { CommandError, oneLine } from './command.ts';

const TIMEOUT_MS = 30_000;

/**
 * Reads the files; nothing is connected yet. A configuration file is followed until `stop`: a good one takes the place of the one
 * before, a bad one is logged and changes nothing. Throws CommandError of one line.
 */
export async function openAuthorizers(
  choice: AuthorizationChoice,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<{ readonly current: () => readonly AuthorizerSetup[]; stop(): void }> {
  if (!('config' in choice)) {
    const setup = await Promise.all(choice.modes.map((type) => fromFlags(type, choice)));
    return { current: () => setup, stop() {} };
  }
  const path = choice.config;
  const read = (text: string, initialTypes?: ReadonlySet<string>) =>
    readAuthorizationConfiguration(text, { fileProblem, ...(initialTypes && { initialTypes }) });
  try {
    const text = readFileSync(path, 'utf8');
    const first = read(text);
    const initial = new Set(first.map(({ type }) => type).filter((type) => type !== 'Webhook'));
    let current = await Promise.all(first.map(connected));
    let newest = 0;
    const failed = (error: Error): void => {
      log.error('the authorization configuration was not taken over', { path, error: error.message });
    };
    const changed = async (next: string): Promise<void> => {
      const turn = ++newest;
      const setup = await Promise.all(read(next, initial).map(connected));
      if (turn !== newest) return;
      current = setup;
      log.info('reloaded the authorization configuration', { path });
    };
    const file = watchFile(path, { initial: text, clock, failed, changed: (next) => void changed(next).catch(failed) });
    return { current: () => current, stop: file.stop };
  } catch (error) {
    throw new CommandError(`--${CONFIG_FLAG}: ${path}: ${oneLine(error)}`);
  }
}

async function fromFlags(type: Mode, choice: Exclude<AuthorizationChoice, { config: string }>) {
  if (type !== 'Webhook') return { type };
  const { file, ...webhook } = choice.webhook!;
  const rest = { name: 'default', timeoutMs: TIMEOUT_MS, failurePolicy: 'NoOpinion', conditions: [] } as const;
  try {
    return await connected({ type, webhook: { ...webhook, ...rest, kubeConfigFile: file } });
  } catch (error) {
    throw new CommandError(`--${WEBHOOK_FILE_FLAG}: ${oneLine(error)}`);
  }
}

/** The authorizer with its kubeconfig read. The URL of the webhook stands where a cluster's would, with its path. */
async function connected(authorizer: ConfiguredAuthorizer): Promise<AuthorizerSetup> {
  if (authorizer.type !== 'Webhook') return authorizer;
  const { kubeConfigFile, ...webhook } = authorizer.webhook;
  const { server, handler } = await clusterFrom({
    flags: { kubeconfig: kubeConfigFile },
    environment: {},
    single: true,
    keepAlive: true,
  });
  const query = `timeout=${goDuration(webhook.timeoutMs)}`;
  const url = `${server}?${query}`;
  return {
    type: 'Webhook',
    webhook: {
      ...webhook,
      async handler(request) {
        try {
          return await handler(request);
        } catch (error) {
          if (request.signal.aborted) throw error;
          throw new Error(`Post ${JSON.stringify(url)}: ${reasonOf(error)}`, { cause: error });
        }
      },
      path: (URL.parse(server)?.pathname ?? '/') === '/' ? '/' : '',
      query,
      headers: {},
    },
  };
}

function fileProblem(path: string): string | undefined {
  try {
    return statSync(path).isFile() ? undefined : 'must be a regular file';
  } catch {
    return `error loading file: stat ${path}: no such file or directory`;
  }
}
