/** `coracle expose NAME --port PORT`: a Service before a machine, which gives it a name and an address that stay. */

import { SERVICES } from '@coracle/apimachinery/types/resource-types';
import { isAlreadyExists } from '@coracle/client/api-failure';
import { type CommandContext, CommandError, listFlag, textFlag, UsageError } from '../command.ts';
import { machineWord } from '../machine-target.ts';
import { equivalent, isExplained } from './equivalent.ts';
import { textOf, withMachine } from './find-machine.ts';

/** Of instances and their Pods, by which virtctl selects them too. */
const MACHINE_NAME = 'vm.kubevirt.io/name';
const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer'] as const;

/** `coracle expose`. */
export async function expose(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  const ports = listFlag(flags, 'port').map(readPort);
  if (ports.length === 0) throw new UsageError('expose takes a port: --port 80, --port 8080:80, --port 53/udp');
  const wanted = textFlag(flags, 'type') ?? 'ClusterIP';
  const type = TYPES.find((one) => one === wanted);
  if (type === undefined) throw new UsageError(`--type takes ${TYPES.join(', ')}, not ${wanted}`);
  return withMachine(context, machineWord(context.words, 'expose'), async ({ key, client }) => {
    const name = textFlag(flags, 'name') ?? key.name;
    const selector = { [MACHINE_NAME]: key.name };
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: key.namespace },
      spec: { type, selector, ports },
    };
    if (isExplained(context)) return equivalent(context, virtctlCall({ key, name, type, ports }));
    await client.create(SERVICES, service, { signal }).catch((error: unknown) => {
      if (!isAlreadyExists(error)) throw error;
      throw new CommandError(
        `there is a Service ${key.namespace}/${name} already (another name: --name NAME; kubectl get svc ${name} -n ${key.namespace})`,
      );
    });
    if (flags['json'] === true) print(JSON.stringify(service));
    else print(`${textOf(key)} is ${name}.${key.namespace}.svc, port ${ports.map(({ port }) => port).join(', ')}`);
    return 0;
  });
}

interface Port {
  readonly name: string;
  readonly port: number;
  readonly targetPort: number;
  readonly protocol: 'TCP' | 'UDP';
}

/** Reads `80`, `8080:80` and `53/udp`. Throws UsageError. */
function readPort(text: string): Port {
  const [, first = '', second = first, protocol = 'tcp'] =
    /^(\d{1,5})(?::(\d{1,5}))?(?:\/(tcp|udp))?$/i.exec(text) ?? [];
  const [port, targetPort] = [Number(first), Number(second)];
  if (![port, targetPort].every((one) => one >= 1 && one <= 65_535))
    throw new UsageError(`--port takes PORT or PORT:GUEST, such as 80 or 8080:80, not "${text}"`);
  return { name: `port-${port}`, port, targetPort, protocol: protocol.toLowerCase() === 'udp' ? 'UDP' : 'TCP' };
}

/** virtctl has one port a call; further ones are calls of their own there. */
function virtctlCall(of: {
  readonly key: { readonly namespace: string; readonly name: string };
  readonly name: string;
  readonly type: string;
  readonly ports: readonly Port[];
}): string[] {
  const [{ port, targetPort, protocol }] = of.ports as readonly [Port];
  return [
    ...['virtctl', 'expose', 'vm', of.key.name, '-n', of.key.namespace, '--name', of.name, '--port', String(port)],
    ...(targetPort === port ? [] : ['--target-port', String(targetPort)]),
    ...(protocol === 'TCP' ? [] : ['--protocol', protocol]),
    ...(of.type === 'ClusterIP' ? [] : ['--type', of.type]),
  ];
}
