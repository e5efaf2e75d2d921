"""The mgr daemon and the `mgr_module` API that it gives to a module, old style and new.

May import simulation and the layers below it; knows nothing of the module's code.
"""
