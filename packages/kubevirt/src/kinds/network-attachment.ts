/**
 * NetworkAttachmentDefinition of the Network Plumbing Working Group: a network beside that of Pods. Names, version and schema
 * are those of the definition that Multus publishes (deployments/multus-daemonset.yml).
 */
import { namespacedType } from '@coracle/apimachinery/meta/gvk';
import { formatTime, type KubeObject } from '@coracle/apimachinery/meta/object';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';

export const NETWORK_ATTACHMENT_GROUP = 'k8s.cni.cncf.io';

export interface NetworkAttachmentDefinition extends KubeObject {
  spec?: {
    /** A CNI configuration, JSON: of one plug-in, or a list of them. */
    config?: string;
  };
}

export const NETWORK_ATTACHMENT_DEFINITIONS = namespacedType<NetworkAttachmentDefinition>(
  `${NETWORK_ATTACHMENT_GROUP}/v1`,
  'network-attachment-definitions',
  'NetworkAttachmentDefinition',
);

const NAMES = {
  plural: 'network-attachment-definitions',
  singular: 'network-attachment-definition',
  kind: 'NetworkAttachmentDefinition',
  listKind: 'NetworkAttachmentDefinitionList',
  shortNames: ['net-attach-def'],
};

/** The definition, established. `now`, in milliseconds, is the time its conditions carry. */
export function networkAttachmentCrd(now: number): CustomResourceDefinition {
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: 'True' as const,
    lastTransitionTime: formatTime(now),
    reason,
    message,
  });
  const schema = {
    type: 'object',
    description: 'A network that Pods and guests may join beside that of Pods.',
    properties: {
      apiVersion: { type: 'string', description: 'Version of the API this object is written in.' },
      kind: { type: 'string', description: 'Kind of this object.' },
      metadata: { type: 'object' },
      spec: {
        type: 'object',
        description: 'How the network is attached.',
        properties: { config: { type: 'string', description: 'A CNI configuration, as JSON.' } },
      },
    },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${NAMES.plural}.${NETWORK_ATTACHMENT_GROUP}` },
    spec: {
      group: NETWORK_ATTACHMENT_GROUP,
      names: NAMES,
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      conversion: { strategy: 'None' },
    },
    status: {
      conditions: [
        condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
        condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
      ],
      acceptedNames: NAMES,
      storedVersions: ['v1'],
    },
  };
}
