/** `coracle up`: the control plane and its nodes in one process, in the foreground or detached. */

import { closeSync, fstatSync, openSync, readFileSync, readSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { delimiter, dirname, resolve } from 'node:path';
import { DEFAULT_SERVICE_CIDR } from '@coracle/apimachinery/types/service-cidrs';
import { parseStaticTokens } from '@coracle/apiserver/auth/static-tokens';
import { systemClock } from '@coracle/runtime/clock/clock';
import { isRunning, signalProcess } from '@coracle/runtime/process/identity';
import { isProgram } from '@coracle/runtime/process/program';
import { spawnDetached } from '@coracle/runtime/process/spawn-detached';
import { aborted } from '@coracle/runtime/signal/abortable';
import { giveMemoryBackAtRest } from '../compose/give-memory-back.ts';
import { type DataDir, dataDirAt, defaultDataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { userKubeconfigPath } from '../config/kubeconfig.ts';
import { ENGINE_FLAGS, MAIN_FILE } from '../config/program-files.ts';
import { awaitedText, findRunning, publishRunning, type Running, withdrawRunning } from '../config/running.ts';
import { serviceRange } from '../config/service-range.ts';
import { LOOPBACK, type ServingAddress, servingAddress } from '../config/serving-address.ts';
import { takeStopRequest } from '../config/stop-request.ts';
import { VERSION } from '../config/version.ts';
import { auditSettings } from './audit-flags.ts';
import { authenticationChoice } from './authentication-choice.ts';
import { authorizationChoice } from './authorization-choice.ts';
import { byteLimits } from './byte-limits.ts';
import {
  type CommandContext,
  CommandError,
  type FlagValues,
  failingAs,
  flagArguments,
  listFlag,
  numberFlag,
  textFlag,
  UsageError,
} from './command.ts';
import { fullDisk } from './full-disk.ts';
import { joinKubeconfig, WARNING } from './join-kubeconfig.ts';
import { oidcChoice, oidcSettings } from './oidc-choice.ts';
import { originPatternProblem } from './origin-pattern.ts';
import { processLog } from './process-log.ts';
import { type HostStop, stopHost } from './stop-host.ts';
import { tokenWebhook, tokenWebhookChoice } from './token-webhook-choice.ts';
import { untilStopped } from './until-stopped.ts';
import { DEFAULT_PORT, UP_FLAGS } from './up-flags.ts';

const POLL_MS = 10;
/** When the start, and what clients do right after it, are over. */
const PRUNE_AFTER_MS = 30_000;
/** First start makes keys and may probe the host; past this something is wrong. */
const START_MS = 60_000;

/** What the process in the background gets as it was given here. */
const { 'data-dir': _, detach: __, json: ___, ...HANDED_ON } = UP_FLAGS;

/** `coracle up`. */
export async function up(context: CommandContext): Promise<number> {
  const { flags, environment } = context;
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const choice = readChoice(flags);
  const started = systemClock.monotonic();
  const other = await findRunning(dir);
  if (other?.stopping)
    throw new CommandError(
      `still stopping in ${dir.root} (pid ${other.process.pid})${other.stopping.guests.length > 0 ? `, waiting for ${awaitedText(other.stopping.guests, systemClock.now())}` : ''}; coracle down waits for it`,
    );
  if (other)
    throw new CommandError(
      `already running in ${dir.root} (pid ${other.process.pid}, ${other.url}); stop it with: coracle down`,
    );
  if (flags['detach'] === true) return detach(context, { dir, argv: flagArguments(HANDED_ON, flags), started });
  return foreground(context, { ...choice, dir, started });
}

/** What the flags ask for. Throws UsageError. */
function readChoice(flags: FlagValues) {
  const clusterName = textFlag(flags, 'cluster-name');
  const audit = auditSettings(flags);
  const tokens = textFlag(flags, 'token-auth-file');
  const range = textFlag(flags, 'service-cluster-ip-range') ?? DEFAULT_SERVICE_CIDR;
  return {
    /** What the host takes as it is. */
    host: {
      port: numberFlag(flags, 'port', { min: 0, max: 65_535, or: DEFAULT_PORT }),
      uploadPort: numberFlag(flags, 'upload-port', { min: 0, max: 65_535, or: 0 }),
      nodes: numberFlag(flags, 'nodes', { min: 0, max: 64, or: 1 }),
      address: readAddress(textFlag(flags, 'bind-address') ?? LOOPBACK),
      controllers: textFlag(flags, 'controllers') ?? '*',
      ...(clusterName !== undefined && { clusterName }),
      hostDiskRoots: listFlag(flags, 'host-disk').map((path) => resolve(path)),
      allowsHostPorts: flags['allow-host-ports'] === true,
      corsAllowedOrigins: originPatterns(listFlag(flags, 'cors-allowed-origins')),
      serviceCidr: failingAs(UsageError, '--service-cluster-ip-range ', () => serviceRange(range)),
      byteLimits: byteLimits(flags),
      ...(audit && { audit }),
    },
    // Before the flags of the issuer, which it excludes whatever they say.
    authentication: authenticationChoice(flags),
    oidc: oidcChoice(flags),
    webhook: tokenWebhookChoice(flags),
    authorization: authorizationChoice(flags),
    tokenFile: tokens === undefined ? undefined : resolve(tokens),
    merge: flags['no-merge-kubeconfig'] !== true,
  };
}

/** Throws UsageError. */
function readAddress(text: string): ServingAddress {
  try {
    return servingAddress(text);
  } catch {
    throw new UsageError(`--bind-address takes an IP address of this host, not ${JSON.stringify(text)}`);
  }
}

/** Throws UsageError when one is no regular expression, or does not say where the name of a host begins and ends. */
function originPatterns(patterns: readonly string[]): readonly string[] {
  for (const pattern of patterns) {
    const problem = originPatternProblem(pattern);
    if (problem !== undefined) throw new UsageError(problem);
  }
  return patterns;
}

/** Throws CommandError of one line. */
const readTokenFile = (path: string) =>
  failingAs(CommandError, `--token-auth-file: ${path}: `, () => parseStaticTokens(readFileSync(path, 'utf8')));

interface Start {
  readonly dir: DataDir;
  /** Monotonic. */
  readonly started: number;
}

async function foreground(context: CommandContext, options: Start & ReturnType<typeof readChoice>): Promise<number> {
  const { environment, print, note, signal, flags } = context;
  const { dir } = options;
  const log = processLog(environment, systemClock, { boundedFile: dir.log });
  const { chooseComponents } = await import('../compose/components.ts');
  failingAs(UsageError, '', () => chooseComponents(options.host.controllers));
  const [{ startHost }, { ISSUER }, { openAuthentication }, { openAuthorizers }] = await Promise.all([
    import('../compose/host.ts'),
    import('@coracle/apiserver/assembly/access'),
    import('./open-authentication.ts'),
    import('./open-authorizers.ts'),
  ]);
  const { authentication = {}, authorization } = options;
  const authorizers = authorization && (await openAuthorizers(authorization, { clock: systemClock, log }));
  const modes = authorization && 'modes' in authorization ? authorization.modes : [];
  const authenticated = openAuthentication(authentication, {
    disallowedIssuers: [ISSUER],
    allowsAll: modes.includes('AlwaysAllow'),
    clock: systemClock,
    log,
  });
  let hostStop: HostStop | undefined;
  const stop = untilStopped(signal, {
    onAgain: () => (hostStop ? hostStop.askedAgain() : note('stopping as soon as the start is complete')),
  });
  const host = await startHost({
    dir,
    ...options.host,
    ...(options.oidc && { oidc: oidcSettings(options.oidc) }),
    ...(options.webhook && { tokenWebhook: await tokenWebhook(options.webhook) }),
    ...(options.tokenFile && { staticTokens: readTokenFile(options.tokenFile) }),
    authentication: authenticated.current,
    ...(authorizers && { authorizers: authorizers.current }),
    clock: systemClock,
    log,
  });
  for (const name of host.nodesLeft)
    note(`${WARNING}node ${name} is started too: it has guests here (coracle drain ${name} empties it)`);
  for (const name of host.unserved.removed)
    note(`${WARNING}node ${name} is removed: --nodes does not include it, and it has no guests`);
  for (const name of host.unserved.silent)
    note(`${WARNING}node ${name} is silent: no machine is scheduled there until its agent is back`);
  // The API serves all the same, and the node says so itself; but whoever starts it should not have to look.
  const missing = options.host.nodes === 0 ? [] : ['qemu-system-x86_64', 'qemu-img'].filter((name) => !isProgram(name));
  if (missing.length > 0)
    note(
      `${WARNING}no guest can run here: ${missing.join(' and ')} not found in PATH (coracle doctor says how to install them)`,
    );
  const { isOpen, listen } = options.host.address;
  // Nobody gets further than a name and a right of their own takes them.
  if (isOpen)
    note(
      `${WARNING}the API and its nodes are open to the network on ${listen} (${host.url}): anyone who reaches it may try to log in`,
    );
  const kubeconfig = userKubeconfigPath(environment);
  // $KUBECONFIG may be the admin's own file, which is written whole and must not be emptied at the end.
  const merge = options.merge && !isSameFile(kubeconfig, dir.kubeconfig);
  const leaveKubeconfig = merge ? await joinKubeconfig(note, kubeconfig, host.access) : undefined;
  // Before it is known to run: who waits for that reads the warnings then.
  const full = await fullDisk(dir.root);
  if (full !== undefined) note(`${WARNING}${full}`);
  await publishRunning(dir, {
    url: host.url,
    version: VERSION,
    nodes: host.nodes,
    startedAt: new Date(systemClock.now()).toISOString(),
  });
  print(readyLine(context, options, host.url));
  // Node writes it at the end, and a process that is killed has none: the next start would compile everything again.
  flushCompileCache();
  const compileCache = getCompileCacheDir();
  if (compileCache !== undefined)
    setTimeout(() => {
      import('../config/compile-cache.ts')
        .then(({ pruneCompileCache }) => pruneCompileCache(compileCache, { now: systemClock.now() }))
        .catch((error: Error) => log.warn('compile cache not bounded', { error: error.message }));
    }, PRUNE_AFTER_MS).unref();
  const endRest = giveMemoryBackAtRest({ clock: systemClock });
  await aborted(stop.signal);
  endRest();
  // Ctrl-C stops everything; a bare SIGTERM (an upgrade, a supervisor) leaves guests running, as `down --keep-vms` does.
  const request = signal.aborted ? { keepVms: false, force: false } : takeStopRequest(dir);
  const report = (text: string): void => void (flags['json'] !== true && note(text));
  if (signal.aborted) report('stopping; guests are shut down');
  hostStop = stopHost(host, { dir, request, note: report, clock: systemClock, log });
  await hostStop.done;
  authenticated.stop();
  authorizers?.stop();
  await leaveKubeconfig?.();
  withdrawRunning(dir);
  stop.release();
  return 0;
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false; // one of them is not there
  }
}

/** What is said once it is ready. */
function readyLine({ flags }: CommandContext, { dir, started }: Start, url: string): string {
  const seconds = (systemClock.monotonic() - started) / 1000;
  const { kubeconfig, root: dataDir } = dir;
  return flags['json'] === true
    ? JSON.stringify({ ready: true, seconds: Number(seconds.toFixed(3)), url, kubeconfig, dataDir })
    : `ready in ${seconds.toFixed(1)}s  ${url}  kubeconfig ${kubeconfig}`;
}

async function detach(context: CommandContext, start: Start & { readonly argv: readonly string[] }): Promise<number> {
  const { dir, argv } = start;
  ensurePrivateDir(dir.root);
  const logStart = sizeOf(dir.log);
  const child = await spawnDetached(
    [
      process.execPath,
      ...new Set([...process.execArgv, ...ENGINE_FLAGS]),
      MAIN_FILE,
      'up',
      '--data-dir',
      dir.root,
      ...argv,
    ],
    {
      cwd: dir.root,
      outputFile: dir.log,
      env: {
        ...pick(context.environment),
        ...ownKubeconfig(context.environment),
        CORACLE_LOG: context.environment['CORACLE_LOG'] ?? 'info',
      },
    },
  ).catch((error: unknown) => {
    // Over before it could be looked at: it has said why.
    throw sizeOf(dir.log) > logStart ? new CommandError(lastError(dir.log, logStart)) : error;
  });
  const deadline = systemClock.monotonic() + START_MS;
  for (;;) {
    const running: Running | undefined = await findRunning(dir);
    if (running?.process.pid === child.identity.pid) {
      for (const line of linesSince(dir.log, logStart)) if (line.startsWith(WARNING)) context.note(line);
      context.print(readyLine(context, start, running.url));
      return 0;
    }
    if (!(await isRunning(child.identity))) throw new CommandError(lastError(dir.log, logStart));
    if (systemClock.monotonic() > deadline)
      throw new CommandError(
        `not ready after ${START_MS / 1000} s, and still starting: coracle status shows it once it is ready (log: ${dir.log})`,
      );
    try {
      await systemClock.sleep(POLL_MS, context.signal);
    } catch (error) {
      await signalProcess(child.identity, 'SIGTERM'); // Ctrl-C means the control plane too; it is in a session of its own
      throw error;
    }
  }
}

const PLACE = ['PATH', 'HOME', 'USER', 'LANG', 'TZ', 'TMPDIR', 'NODE_COMPILE_CACHE', 'CORACLE_DEBUG'];
const DIRECTORIES = ['XDG_DATA_HOME', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME'];
/** Whom registries, webhooks and issuers are trusted by, and the way to them. */
const TRUST = ['NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];
const PROXIES = [
  'NODE_USE_ENV_PROXY',
  'HTTP_PROXY',
  'http_proxy',
  'HTTPS_PROXY',
  'https_proxy',
  'NO_PROXY',
  'no_proxy',
];

/** What a detached process needs of the environment, and nothing else. */
const pick = (environment: CommandContext['environment']): Record<string, string> =>
  Object.fromEntries(
    [...PLACE, ...DIRECTORIES, ...TRUST, ...PROXIES].flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** The paths of `$KUBECONFIG` as they are from here: the detached process works in the data directory. */
function ownKubeconfig({ KUBECONFIG }: CommandContext['environment']): Record<string, string> {
  if (!KUBECONFIG) return {};
  const paths = KUBECONFIG.split(delimiter).map((path) => (path === '' ? path : resolve(path)));
  return { KUBECONFIG: paths.join(delimiter) };
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** What the child wrote since `from`, the last 16 KiB of it. */
function linesSince(path: string, from: number): string[] {
  const buffer = Buffer.alloc(16_384);
  const file = openSync(path, 'r');
  const length = readSync(file, buffer, 0, buffer.length, Math.max(from, fstatSync(file).size - buffer.length));
  closeSync(file);
  return buffer.toString('utf8', 0, length).trim().split('\n');
}

/** The error line the child ended with. */
function lastError(path: string, from: number): string {
  const line = linesSince(path, from).findLast((text) => text.startsWith('error: '));
  if (line !== undefined) return line.slice('error: '.length);
  // A disk without room takes no log either.
  if (sizeOf(path) === from && statfsSync(path).bavail === 0)
    return `no space is left on the disk of ${dirname(path)}; free some there and start again (nothing is lost)`;
  return `the control plane ended while starting; see ${path}`;
}
