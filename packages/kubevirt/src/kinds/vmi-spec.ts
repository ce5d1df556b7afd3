/** The spec of a virtual machine instance: what one run of a guest is made of. */

import type {
  Affinity,
  ExecAction,
  HTTPGetAction,
  TCPSocketAction,
  Toleration,
  TopologySpreadConstraint,
} from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { domain } from './domain.ts';
import {
  anyObject,
  atomicList,
  builtin,
  flag,
  int,
  keyedList,
  list,
  long,
  needed,
  object,
  oneOf,
  str,
  stringMap,
  strings,
} from './fields.ts';
import { network } from './network.ts';
import { utilityVolume, volume } from './volumes.ts';

const CORE = 'io.k8s.api.core.v1';

export const EVICTION_STRATEGIES = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const;

const probe = (description: string) =>
  object(description, {
    exec: builtin<ExecAction>(`${CORE}.ExecAction`, 'Runs a command in the guest through its agent.'),
    guestAgentPing: flag('Pings the guest agent.'),
    httpGet: builtin<HTTPGetAction>(`${CORE}.HTTPGetAction`, 'Sends a GET to the guest.'),
    tcpSocket: builtin<TCPSocketAction>(`${CORE}.TCPSocketAction`, 'Opens a TCP connection to the guest.'),
    initialDelaySeconds: int('Seconds before the first probe.'),
    timeoutSeconds: int('Seconds until a probe counts as failed; 1 when absent.'),
    periodSeconds: int('Seconds between probes; 10 when absent.'),
    successThreshold: int('Successes in a row that end a failure; 1 when absent.'),
    failureThreshold: int('Failures in a row that count; 3 when absent.'),
  });

const secretSource = object('Where the credential is.', {
  secret: object('A Secret.', { secretName: needed(str('Name of the Secret.')) }),
});

const accessCredential = object('A credential for the guest; one member only.', {
  sshPublicKey: object('SSH public keys.', {
    source: needed(secretSource),
    propagationMethod: needed(
      object('How the keys reach the guest; one member only.', {
        configDrive: flag('By the config drive.'),
        noCloud: flag('By the NoCloud disk.'),
        qemuGuestAgent: object('By the guest agent.', {
          users: needed(strings('Users of the guest that get the keys.', { 'x-kubernetes-list-type': 'set' })),
        }),
      }),
    ),
  }),
  userPassword: object('Passwords.', {
    source: needed(secretSource),
    propagationMethod: needed(
      object('How the passwords reach the guest.', { qemuGuestAgent: flag('By the guest agent.') }),
    ),
  }),
});

export const vmiSpec = object('What the guest is made of.', {
  priorityClassName: str('Priority class of the launcher pod.'),
  domain: needed(domain),
  nodeSelector: stringMap('Labels a node must have.'),
  affinity: builtin<Affinity>(`${CORE}.Affinity`, 'Affinity and anti-affinity rules.'),
  schedulerName: str('Scheduler that places the launcher pod.'),
  serviceAccountName: str('Service account of the launcher pod.'),
  tolerations: list(builtin<Toleration>(`${CORE}.Toleration`, 'One toleration.'), 'Taints that are tolerated.'),
  topologySpreadConstraints: keyedList(
    builtin<TopologySpreadConstraint>(`${CORE}.TopologySpreadConstraint`, 'One rule.'),
    ['topologyKey', 'whenUnsatisfiable'],
    'How guests spread over the topology.',
  ),
  evictionStrategy: oneOf(EVICTION_STRATEGIES, 'What an eviction does.'),
  startStrategy: oneOf(['Paused'], 'Paused starts the guest paused.'),
  terminationGracePeriodSeconds: long('Seconds the guest has to shut down.'),
  volumes: list(volume, 'Volumes of the disks.', { maxItems: 256 }),
  livenessProbe: probe('Stops the guest when it fails.'),
  readinessProbe: probe('Takes the guest out of services while it fails.'),
  hostname: str('Host name of the guest; the name of the object when absent.'),
  subdomain: str('Subdomain of the guest.'),
  networks: list(network, 'Networks of the interfaces.', { maxItems: 256 }),
  dnsPolicy: str('ClusterFirst, ClusterFirstWithHostNet, Default or None.'),
  dnsConfig: builtin<{
    nameservers?: string[];
    searches?: string[];
    options?: { name?: string; value?: string }[];
  }>(`${CORE}.PodDNSConfig`, 'DNS settings of the pod.'),
  accessCredentials: atomicList(accessCredential, 'Credentials put into the guest.', { maxItems: 256 }),
  architecture: str('amd64, arm64 or s390x.'),
  resourceClaims: keyedList(
    object('A resource claim.', {
      name: needed(str('Name within the guest, a DNS label.')),
      resourceClaimName: str('An existing ResourceClaim.'),
      resourceClaimTemplateName: str('A ResourceClaimTemplate to make a claim of.'),
    }),
    ['name'],
    'Resource claims that must be allocated first.',
  ),
  utilityVolumes: keyedList(utilityVolume, ['name'], 'Volumes for the launcher alone.', { maxItems: 256 }),
});

/** Labels and annotations of the instances made from a template. */
export interface TemplateMeta {
  name?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [field: string]: unknown;
}

export const vmiTemplate = object('Template of an instance.', {
  metadata: anyObject<TemplateMeta>('Metadata of the instances.', { nullable: true }),
  spec: vmiSpec,
});

export type EvictionStrategy = (typeof EVICTION_STRATEGIES)[number];
export type VirtualMachineInstanceSpec = Static<typeof vmiSpec>;
export type AccessCredential = Static<typeof accessCredential>;
export type GuestProbe = NonNullable<VirtualMachineInstanceSpec['livenessProbe']>;
