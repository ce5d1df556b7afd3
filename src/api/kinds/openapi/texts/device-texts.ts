/** Our own one-line descriptions of resource.k8s.io, devices for Pods; the notation is that of `type-texts.ts`. */
export const DEVICE_TEXTS = `
@resource
ResourceClaim: A request for devices.
ResourceClaimTemplate: What a claim that is made for a Pod looks like.
ResourceSlice: Devices that a driver offers.
DeviceClass: Devices of a kind, by name.
AllocatedDeviceStatus: How a device stands that a claim has got.
  data: More about it, in the driver's own form.
  device: The device.
  driver: The driver.
  networkData: Its network addresses.
  pool: The pool.
  shareID: Which share of the device.
AllocationResult: What a claim has got.
  allocationTimestamp: When.
  devices: The devices.
  nodeSelector: The nodes that can reach them.
CELDeviceSelector: Chooses devices.
  expression: The CEL expression that must be true.
DeviceSelector: Chooses devices.
  cel: A rule in CEL.
CapacityRequestPolicy: How much of a device can be asked for.
  default: What is given when nothing is said.
  validRange: The amounts that can be asked for, as a range.
  validValues: The amounts that can be asked for, one by one.
CapacityRequestPolicyRange: A range of amounts.
  max: The largest.
  min: The smallest.
  step: The distance from one to the next.
CapacityRequirements: How much of a device is asked for.
  requests: The amounts, by name.
Counter: An amount that can run out.
  value: How much there is.
CounterSet: Amounts that devices share.
  counters: The amounts, by name.
DeviceCounterConsumption: What a device takes from shared amounts.
  counterSet: The set it takes from.
  counters: How much, by name.
Device: A device that a driver offers.
  allNodes: Whether all nodes can reach it.
  allowMultipleAllocations: Whether several claims can share it.
  attributes: What it is like, by name.
  bindingConditions: Conditions that must hold before a Pod is put on its node.
  bindingFailureConditions: Conditions that mean this will not happen.
  bindsToNode: Whether a claim is tied to the node of the device.
  capacity: How much it has, by name.
  consumesCounters: What it takes from shared amounts.
  nodeAllocatableResourceMappings: What it takes from the resources of the node.
  nodeName: The node that can reach it.
  nodeSelector: The nodes that can reach it.
  taints: What keeps claims away that do not tolerate it.
DeviceAllocationConfiguration, DeviceClaimConfiguration, DeviceClassConfiguration: Settings for a driver.
  opaque: The settings.
  requests: The requests they are for; all when empty.
  source: Where they come from: FromClass or FromClaim.
DeviceAllocationResult: The devices that a claim has got.
  config: Settings for the drivers.
  results: The devices.
DeviceAttribute: What a device is like; one of these.
  bool: True or false.
  bools: A list of them.
  int: A whole number.
  ints: A list of them.
  string: A text.
  strings: A list of them.
  version: A version with three parts.
  versions: A list of them.
DeviceCapacity: How much a device has of something.
  requestPolicy: How much of it can be asked for.
  value: How much it has.
DeviceClaim: The devices that are asked for.
  config: Settings for the drivers.
  constraints: How the devices must fit together.
  requests: The requests.
DeviceClassSpec: Which devices, and their settings.
  config: Settings for the drivers.
  extendedResourceName: The resource name by which containers can ask for them.
  selectors: The devices; all must hold.
DeviceConstraint: How devices must fit together.
  distinctAttribute: The attribute that must differ.
  matchAttribute: The attribute that must be the same.
  requests: The requests it is about; all when empty.
DeviceRequest: A request for devices; one of two.
  exactly: Just this.
  firstAvailable: The first of these that can be had.
  name: How the rest of the claim calls it.
DeviceRequestAllocationResult: A device that a request has got.
  adminAccess: Whether it is for looking after a device that others use.
  bindingConditions: Conditions that must hold before the Pod is put on its node.
  bindingFailureConditions: Conditions that mean this will not happen.
  consumedCapacity: How much of the device it takes.
  device: The device.
  driver: The driver.
  pool: The pool.
  request: The request.
  shareID: Which share of the device.
  tolerations: The taints that were tolerated.
DeviceSubRequest, ExactDeviceRequest: The devices that are asked for.
  adminAccess: Whether it is for looking after devices that others use.
  allocationMode: ExactCount, or All for every device that fits.
  capacity: How much of each device is asked for.
  count: How many.
  deviceClassName: The DeviceClass.
  selectors: The devices; all must hold.
  tolerations: The taints that are tolerated.
DeviceTaint: Keeps claims away from a device.
  effect: None, NoSchedule or NoExecute.
  key: The key.
  timeAdded: When it was put on.
  value: The value.
DeviceToleration: A taint that is tolerated.
  effect: The effect it is about; all when empty.
  key: The key of the taint; all when empty.
  operator: Equal, or Exists for any value.
  tolerationSeconds: How long it is tolerated; for ever when empty.
  value: The value of the taint.
NetworkDeviceData: The addresses of a network device.
  hardwareAddress: The hardware address.
  interfaceName: The name of the interface inside the Pod.
  ips: The addresses, with the length of their network.
NodeAllocatableResourceMapping: What a device takes from a resource of the node.
  allocationMultiplier: How much for each unit.
  capacityKey: The capacity that is counted.
OpaqueDeviceConfiguration: Settings in a driver's own form.
  driver: The driver.
  parameters: The settings.
ResourceClaimConsumerReference: Who uses a claim.
  resource: The plural of the resource.
ResourceClaimSpec: What is asked for.
  devices: The devices.
ResourceClaimStatus: What the claim has got.
  allocation: What it has got.
  devices: How the devices stand.
  reservedFor: Who uses them.
ResourceClaimTemplateSpec: What a claim that is made from here looks like.
  spec: What is asked for.
ResourcePool: The pool that devices belong to.
  generation: The number of this state of the pool.
  resourceSliceCount: How many slices the pool has.
ResourceSliceSpec: The devices of one driver.
  allNodes: Whether all nodes can reach them.
  devices: The devices.
  driver: The driver.
  nodeName: The node that can reach them.
  nodeSelector: The nodes that can reach them.
  perDeviceNodeSelection: Whether each device says who can reach it.
  pool: The pool that they belong to.
  sharedCounters: Amounts that the devices share.
`;
