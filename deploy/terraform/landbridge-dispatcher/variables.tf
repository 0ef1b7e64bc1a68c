# Variables that the chart has too bear its names, in Terraform's spelling; their defaults are the chart's.

variable "namespace" {
  description = "The dispatcher's own namespace; it is made here, with the pod security standard restricted."
  type        = string
  default     = "landbridge"
}

variable "environment" {
  description = "The environment's name, as in its contract."
  type        = string
}

variable "image" {
  description = "The dispatcher's image, by digest."
  type        = string

  validation {
    condition     = can(regex("@sha256:[0-9a-f]{64}$", var.image))
    error_message = "image: expected a reference by digest (...@sha256:...)."
  }
}

variable "nats_url" {
  description = "Where the broker is reached, such as tls://nats.example:4222."
  type        = string
}

variable "credentials" {
  description = "The environment's credentials for the broker, as `landbridge env join` gives them. They end up in Terraform's state: keep that as you keep a key, or leave this empty and make the Secret by other means."
  type        = string
  default     = ""
  sensitive   = true
}

variable "work_namespaces" {
  description = "Where work runs."
  type        = list(string)
  default     = ["landbridge-work"]
}

variable "create_namespaces" {
  description = "Whether the chart makes the namespaces of the work, with the pod security standard restricted."
  type        = bool
  default     = true
}

variable "storage_class" {
  description = "For the dispatcher's own directory; empty: the cluster's default."
  type        = string
  default     = ""
}

variable "egress_ports" {
  description = "Where traffic of the dispatcher may go besides names: the API server's ports and the broker's."
  type        = list(number)
  default     = [443, 6443, 4222]
}

variable "operators" {
  description = "Operators that gangs may run by: rights are given for these only. They have to stand in the bindings, too."
  type = object({
    jobset           = optional(bool, false)
    kubeflowTrainer  = optional(bool, false)
    kubeflowTraining = optional(bool, false)
    kuberay          = optional(bool, false)
  })
  default = {}
}

variable "routes" {
  description = "What services are reached by from outside, as the bindings say: rights are given for these only."
  type = object({
    ingress   = optional(bool, false)
    httpRoute = optional(bool, false)
  })
  default = {}
}

variable "bindings" {
  description = "The site's bindings, as in docs/kubernetes-work.md."
  type        = any
}

variable "chart" {
  description = "The chart: the one beside this module, or an OCI reference of your own copy."
  type        = string
  default     = ""
}

variable "chart_version" {
  description = "The chart's version, where it comes out of a registry."
  type        = string
  default     = null
}
