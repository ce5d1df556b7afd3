/** Our own one-line descriptions of traffic, events and leases; the notation is that of `type-texts.ts`. */
export const NETWORK_TEXTS = `
@coordination
LeaseSpec: Who holds a lease, and since when.
  acquireTime: When the holder got it.
  holderIdentity: Who holds it.
  leaseDurationSeconds: How long it lasts without being renewed.
  leaseTransitions: How often it has changed hands.
  preferredHolder: Who should get it next.
  renewTime: When the holder last renewed it.
  strategy: How the next holder is chosen.
@events
Event:
  action: What was done.
  deprecatedCount: How often it happened; for older clients.
  deprecatedFirstTimestamp: When it was first seen; for older clients.
  deprecatedLastTimestamp: When it was last seen; for older clients.
  deprecatedSource: The program that reports it; for older clients.
  eventTime: When it was first seen.
  note: What happened, for people to read.
  reason: What happened, as one word.
  regarding: The object it is about.
  related: Another object it is about.
  reportingController: The program that reports it.
  reportingInstance: Which instance of that program.
  series: How it goes on, when it happens again and again.
  type: Normal or Warning.
EventSeries: Something that happens again and again.
  count: How often it has happened.
  lastObservedTime: When it was last seen.
@networking
HTTPIngressPath: Where requests of a path go.
  backend: Where they go.
  path: The path.
  pathType: How the path is compared: Exact, Prefix or ImplementationSpecific.
HTTPIngressRuleValue: Where requests go, by path.
  paths: One entry for each path.
IPAddress: An address that is taken; its name is the address.
IPAddressSpec: Who has taken an address.
  parentRef: The object that has it.
IPBlock: A network.
  cidr: The network.
  except: Parts of it that do not count.
IngressBackend: Where requests go; one of two.
  resource: An object of another kind.
  service: A Service.
IngressClass: A program that serves Ingresses.
IngressClassParametersReference: An object with settings.
  scope: Cluster or Namespace.
IngressClassSpec: Which program it is.
  controller: The name of the program.
  parameters: An object with its settings.
IngressLoadBalancerIngress: An address of the load balancer.
  hostname: The name.
  ip: The address.
  ports: How its ports stand.
IngressLoadBalancerStatus: The addresses of the load balancer.
  ingress: One entry for each address.
IngressPortStatus: How a port of the load balancer stands.
  error: What is wrong with it.
  port: The number of the port.
  protocol: TCP, UDP or SCTP.
IngressRule: Where requests for a host go.
  host: The host; any when empty.
  http: Where its requests go, by path.
IngressServiceBackend: A port of a Service.
  name: The Service.
  port: The port.
ServiceBackendPort: A port of a Service, by name or number.
  name: The name.
  number: The number.
IngressSpec: Where requests from outside go.
  defaultBackend: Where requests go that no rule is for.
  ingressClassName: The IngressClass that serves it.
  rules: Where requests go, by host and path.
  tls: The certificates, by host.
IngressStatus: By which addresses it is reached.
  loadBalancer: The addresses of the load balancer.
IngressTLS: The certificate of some hosts.
  hosts: The hosts.
  secretName: The Secret with certificate and key.
NetworkPolicyEgressRule, NetworkPolicyIngressRule: Traffic that is allowed.
  from: Where it may come from; anywhere when empty.
  ports: The ports it may use; all when empty.
  to: Where it may go; anywhere when empty.
NetworkPolicyPeer: The other side of some traffic.
  ipBlock: A network.
  namespaceSelector: Namespaces, by labels.
  podSelector: Pods, by labels.
NetworkPolicyPort: Ports that may be used.
  endPort: The last port of a range.
  port: The port, or the first one of a range; all when empty.
  protocol: TCP, UDP or SCTP.
NetworkPolicySpec: Which Pods, and the traffic that is allowed.
  egress: What they may send.
  ingress: What they may get.
  podSelector: The Pods it is about; all when empty.
  policyTypes: Which directions are restricted: Ingress, Egress or both.
ParentReference: The object that has an address.
  resource: The plural of the resource.
ServiceCIDR: Networks that Services get addresses from.
ServiceCIDRSpec: The networks.
  cidrs: The networks, one for each IP family.
ServiceCIDRStatus: How the networks stand.
@discovery
Endpoint: Something behind a Service.
  addresses: Its addresses.
  conditions: Whether it can take traffic.
  deprecatedTopology: No longer in use.
  hints: Who should send traffic to it.
  hostname: Its host name.
  nodeName: The node it is on.
  targetRef: The Pod it belongs to.
  zone: The zone it is in.
EndpointConditions: Whether something behind a Service can take traffic.
  ready: Whether it takes new traffic.
  serving: Whether it still answers, even while it ends.
  terminating: Whether it is ending.
EndpointHints: Who should send traffic here.
  forNodes: The nodes that should.
  forZones: The zones that should.
EndpointPort: A port behind a Service.
  appProtocol: What is spoken on the port.
  name: The name of the port in the Service.
  port: The number of the port.
  protocol: TCP, UDP or SCTP.
EndpointSlice:
  addressType: IPv4, IPv6 or FQDN.
  endpoints: What is behind the Service.
  ports: The ports that all of them have.
ForNode: A node.
ForZone: A zone.
`;
