"""Experimental policies."""
